"""Regions of the world, from what providers call their own."""

import re

TOKENS = {
    "CN-mainland": (
        "cn", "china", "beijing", "shanghai", "hangzhou", "shenzhen",
    ),
    "HK": (
        "hk", "hongkong",
    ),
    "US": (
        "us", "usa", "na", "eastus", "eastus2", "westus", "westus2", "westus3", "centralus", "southcentralus",
        "northcentralus", "westcentralus", "virginia", "texas", "oregon",
    ),
    "Europe": (
        "eu", "eur", "europe", "fr", "france", "de", "germany", "gb", "uk", "fi", "fin", "finland", "ice", "is",
        "iceland", "nl", "netherlands", "no", "norway", "se", "sweden", "swedencentral", "pl", "poland", "es",
        "spain", "it", "italy", "ch", "switzerland", "ro", "romania", "bg", "bulgaria", "cz", "dk", "gr", "ua", "pt",
        "hu", "hr", "si", "ie", "at", "be", "westeurope", "northeurope", "uksouth", "ukwest", "francecentral",
        "germanywestcentral", "ee", "lt", "lv",
    ),
    "Asia-Pacific": (
        "asia", "ap", "apac", "jp", "japan", "kr", "korea", "sg", "singapore", "tw", "taiwan", "vn", "vietnam", "th",
        "my", "malaysia", "id", "indonesia", "ph", "au", "australia", "oc", "nz", "sea", "japaneast", "japanwest",
        "koreacentral", "southeastasia", "eastasia", "australiaeast", "as",
    ),
    "India": (
        "in", "india", "in1", "centralindia", "southindia", "westindia", "bangalore", "mumbai",
    ),
    "Americas": (
        "ca", "canada", "canadacentral", "canadaeast", "br", "brazil", "brazilsouth", "mx", "mexico", "southamerica",
        "sa", "cl", "co", "ar", "northamerica",
    ),
    "ME-Africa": (
        "me", "af", "africa", "ae", "uae", "uaenorth", "il", "israel", "israelcentral", "za", "qatar", "qa", "sau",
    ),
}  # fmt: skip
CLASS_OF = {token: name for name, tokens in TOKENS.items() for token in tokens}
GLOBAL = "global"


def region_class(region: str) -> str:
    """The part of the world of a region; "global" where the provider names none."""
    tokens = [token for token in re.split(r"[^a-z0-9]+", region.casefold()) if token]
    for token in tokens:
        if found := CLASS_OF.get(token) or CLASS_OF.get(token.rstrip("0123456789")):
            return found
    return GLOBAL


def wanted_classes(asked: str) -> frozenset[str]:
    """The classes that a person's word for a region covers; empty where it is the name of a single region."""
    word = asked.strip().casefold()
    named = next((name for name in (*TOKENS, GLOBAL) if name.casefold() == word), None) or CLASS_OF.get(word)
    if word in ("cn", "china", "中国", "国内"):
        return frozenset({"CN-mainland", "CN", "HK"})
    named = {"欧洲": "Europe", "美国": "US", "亚太": "Asia-Pacific", "香港": "HK", "印度": "India"}.get(word, named)
    return frozenset({named}) if named else frozenset()
