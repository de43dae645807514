"""Rows in the form of SkyPilot's published files, each with one of their traps."""

import csv
import io

GCP = """InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice
a2-highgpu-1g,12.0,85.0,,,,us-central1,us-central1-a,0.739,0.36975
a2-highgpu-8g,96.0,680.0,,,,us-central1,us-central1-a,5.91582,2.958
a2-highgpu-1g,12.0,85.0,,,,me-west1,me-west1-a,0.81342,0.33516
a3-highgpu-1g,26.0,234.0,,,,us-central1,us-central1-a,1.18251,0.36117
n1-highmem-8,8.0,52.0,,,,us-central1,us-central1-a,0.47321,0.09962
,,,A100,1.0,A100,us-central1,us-central1-a,2.934,1.147
,,,A100,8.0,A100,us-central1,us-central1-a,23.47,9.18
,,,A100,1.0,A100,me-west1,me-west1-a,700.0,700.0
,,,T4,1.0,T4,us-central1,us-central1-a,0.35,0.14
,,,tpu-v6e-16,1,tpu-v6e-16,us-central1,us-central1-a,43.2,700.0
,,,tpu-v5p-16,1,tpu-v5p-16,us-central1,us-central1-a,33.6,12.0
,,,tpu-v6e-16,1,tpu-v6e-16,southamerica-east1,southamerica-east1-c,700.0,700.0
"""


def table(head: str, rows: list[list[object]]) -> str:
    """A CSV of rows; quotes as the files have them."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(head.split(","))
    writer.writerows(rows)
    return out.getvalue()


def gpu_info(name: str, count: int, mib: float, total: float | None = None) -> str:
    return str(
        {
            "Gpus": [{"Name": name, "Count": count, "MemoryInfo": {"SizeInMiB": mib}}],
            "TotalGpuMemoryInMiB": total or mib,
        }
    )


VAST = table(
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region",
    [
        ["1x-RTX_4090-32-65536", "RTX4090", 1, 32, 64.0, gpu_info("RTX4090", 1, 24564), "0.40", "0.00", "Germany, DE, EU"],
        ["1x-RTX_4090-32-65536", "RTX4090", 1, 32, 64.0, gpu_info("RTX4090", 1, 49140), "0.40", "0.00", "Hong Kong, HK, AS"],
        ["2x-RTX_4070S_Ti-32-65536", "RTX4070", 2, 32, 64.0, gpu_info("RTX4070", 2, 32752), "0.36", "0.00", "Bulgaria, BG, EU"],
        ["1x-RTX_4060_Ti-32-65536", "RTX4060", 1, 32, 64.0, gpu_info("RTX4060", 1, 16380), "0.13", "0.00", "London, GB, EU"],
        ["2x-H100_NVL-32-65536", "H100", 2, 32, 64.0, gpu_info("H100", 2, 191660), "4.53", "0.00", "Sydney, AU, OC"],
        ["1x-RTX_PRO_6000_S-32-1", "RTXPRO6000S", 1, 32, 64.0, gpu_info("x", 1, 97887), "1.13", "0.00", "New York, US, NA"],
    ],
)  # fmt: skip
RUNPOD = table(
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,GpuInfo",
    [
        ["1x_A100-80GB_SECURE", "A100-80GB", 1.0, 8.0, 117.0, region, 1.39, 1.39, zone, gpu_info("A100 PCIe", 1, 80)]
        for region, zone in (
            ("IN", "AP-IN-1"),
            ("IN", "AP-IN-2"),
            ("CZ", "EU-CZ-1"),
            ("NL", "EU-NL-1"),
            ("US", "US-CA-1"),
        )
    ],
)
LAMBDA = table(
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice",
    [
        ["gpu_4x_a6000", "A6000", 4.0, 56.0, 400.0, 4.36, region, gpu_info("A6000", 4, 49152), ""]
        for region in ("europe-central-1", "us-east-1", "us-west-2", "asia-south-1")
    ]
    + [["cpu_4x_general", "", "", 4.0, 16.0, 0.2, "us-east-1", "", ""]],
)
VERDA = table(
    "InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,Price,SpotPrice",
    [
        ["1B300.30V", "1B300.30V", 30, 275, "B300", 1.0,
         '{""Gpus"": [{""Name"": ""B300"", ""Count"": 1, ""MemoryInfo"": {""SizeInMiB"": 268288}}]}', "FIN-03", 6.99, 2.447],
        ["2B300.60V", "2B300.60V", 60, 550, "B300", 2.0,
         '{""Gpus"": [{""Name"": ""B300"", ""Count"": 2, ""MemoryInfo"": {""SizeInMiB"": 268800}}]}', "FIN-03", "", 4.893],
        ["1RTXPRO6000.30V", "x", 30, 90, "RTX-PRO-6000", 1.0, gpu_info("RTX-PRO-6000", 1, 98304), "FIN-03", 1.69, 0.5915],
    ],
)  # fmt: skip
SHADEFORM = table(
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice",
    [
        ["crusoe_A100-80G-sxm4x8", "A100-80GB", 8.0, 96, 960, 18.4, "culpeper-usa-1", gpu_info("A100-80GB", 8, 80, 640), ""],
        ["crusoe_A100-80G-PCIe", "A100-80G-PCIe", 1.0, 12, 120, 2.0, "culpeper-usa-1", gpu_info("A", 1, 80), ""],
        ["acme_H100", "H100", 1.0, 26, 200, 4.29, "saltlakecity-usa-1", gpu_info("H100", 1, 80), ""],
        ["acme_RTX6000", "RTX6000", 1.0, 10, 60, 0.5, "x-usa-1", "", ""],
        ["acme_A10G", "A10G", 1.0, 10, 60, 0.9, "x-usa-1", gpu_info("A10G", 1, 24), ""],
        ["acme_L40S", "L40S", 1.0, 10, 60, 0.9, "x-usa-1", gpu_info("L40S", 1, 24), ""],
        ["acme_Unheard", "FOO1", 1.0, 10, 60, 0.9, "x-usa-1", "", ""],
    ],
)  # fmt: skip
PRIME = table(
    "InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice",
    [
        ["acme__8xA100_80GB__240", "gpu_8x_a100_80gb_sxm4", 240, 1800, "A100-80GB", 8.0,
         gpu_info("A100-80GB", 8, 655360, 5242880), "US", "us-midwest-1", 14.32, ""],
        ["acme__1xA100_80GB__22__SPOT", "A100_PCIE_80GB", 22, 120, "A100-80GB", 1.0, gpu_info("A", 1, 81920), "FI", "FIN-01", "", 0.53],
    ],
)  # fmt: skip
