"""What is said of a stage beside its numbers: the rows it brings, and an engine's share that cannot hold the model."""

from estimator.inventory import inventory
from estimator.schema import Run
from estimator.setting import Setting
from estimator.stages.rows import OWN_STEP, PAIRS
from estimator.step.tape import HALF
from estimator.vision.held import near

Text = tuple[str, object, str, str]
GIB = 1 << 30


def stage_notes(run: Run, setting: Setting) -> list[Text]:
    """Notes on images and stage of a run, each with its field, value and sentence in both languages."""
    notes = _images(run, setting)
    if run.task != "train" or run.stage not in OWN_STEP:
        return notes
    if setting.rows > 1:
        notes.append(("stage", run.stage, *_rows(run, setting)))
    return notes + _share(run, setting)


def _images(run: Run, setting: Setting) -> list[Text]:
    """What the images of a row become."""
    if run.vision is None:
        return []
    if not setting.at.image:
        text = (
            "the image tower's work is not described for this model: its weights are counted, its activations are not"
        )
        return [("vision", run.vision.images, text, "该模型视觉塔的计算过程尚未描述：仅计入其权重，未计激活")]
    tiles, patches, _, features = setting.at.image
    size = f"{run.vision.width} x {run.vision.height}"
    unsure, unsure_zh = ("", "")
    if near(run, setting.arch):
        unsure, unsure_zh = " (read in transformers' source, not traced)", "（依据 transformers 源码，未经跟踪验证）"
    return [
        (
            "vision",
            run.vision.images,
            f"{run.vision.images} image(s) of {size} pixels: {features:,} tokens of the row, "
            f"{tiles * patches:,} patches in the tower{unsure}",
            f"{run.vision.images} 张 {size} 像素的图像：占该行 {features:,} 个 token，"
            f"视觉塔处理 {tiles * patches:,} 个图块{unsure_zh}",
        )
    ]


def _rows(run: Run, setting: Setting) -> tuple[str, str]:
    rows, length = setting.at.batch, f"{setting.at.length:,}"
    if run.stage == "embed":
        return (
            f"embed: a pair is two rows, anchor and positive: {rows} rows x {length} tokens",
            f"embed：每对包含锚点与正例两行，共 {rows} 行 x {length} 个 token",
        )
    if run.stage in PAIRS:
        return (
            f"{run.stage}: a pair is two rows, chosen and rejected: {rows} rows x {length} tokens in one forward",
            f"{run.stage}：每对包含 chosen 与 rejected 两行，一次前向共 {rows} 行 x {length} 个 token",
        )
    return (
        f"{run.stage}: {setting.rows} completions for each prompt: {rows} rows x {length} tokens in one forward",
        f"{run.stage}：每个提示 {setting.rows} 个回答，一次前向共 {rows} 行 x {length} 个 token",
    )


def _share(run: Run, setting: Setting) -> list[Text]:
    """VLLM's share must hold the weights before there is any cache."""
    online = setting.online
    weights = inventory(setting.arch).numel * HALF
    if online is None or online.engine == "hf" or online.bytes >= weights:
        return []
    share = run.rl.colocated_share if run.rl else None
    return [
        (
            "rl.colocated_share",
            share,
            f"vLLM will not start: its share is {online.bytes / GIB:.1f} GiB and its weights take "
            f"{weights / GIB:.1f} GiB; raise the share or use a server on another card",
            f"vLLM 无法启动：其份额为 {online.bytes / GIB:.1f} GiB，而权重需要 {weights / GIB:.1f} GiB；"
            "请提高占比，或在其他显卡上以 server 模式运行",
        )
    ]
