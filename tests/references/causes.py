"""Root-cause clustering in plain Python: HUDD as its released code does it, and its parts as the paper states them.

Slow on purpose. From distances of heat maps: every row divided by its largest entry, rows compared with each other,
Ward's criterion, every number of clusters cut and scored from scratch, the knee of the score's fourth-order gradient.
"""

from math import sqrt

from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist


def heat_map_distances(heat_maps):
    """Euclidean distance of every two heat maps, as nested lists."""
    flat = [list(map(float, row)) for row in heat_maps]
    return [[sqrt(sum((a - b) ** 2 for a, b in zip(one, other, strict=True))) for other in flat] for one in flat]


def members_of(labels):
    """Places of the images of each label 1 … largest."""
    groups = []
    for label in range(1, max(labels) + 1):
        group = [0] * list(labels).count(label)
        place = 0
        for image in range(len(labels)):
            if labels[image] == label:
                group[place] = image
                place += 1
        groups.append(group)
    return groups


def score(distances, labels):
    """Σ_C |C|/N · mean distance of two images of C, over the number of clusters."""
    total = 0.0
    for group in members_of(labels):
        pairs = [distances[one][other] for one in group for other in group if other > one]
        if pairs:
            total += len(group) / len(labels) * sum(pairs) / len(pairs)
    return total / max(labels)


def fourth_order_gradient(values):
    """Central differences of fourth order inside, single differences for two places at either end."""
    last = len(values) - 1
    slopes = []
    for i in range(len(values)):
        if i < 2:
            slopes.append(values[i + 1] - values[i])
        elif i > last - 2:
            slopes.append(values[i] - values[i - 1])
        else:
            slopes.append((values[i - 2] - 8 * values[i - 1] + 8 * values[i + 1] - values[i + 2]) / 12)
    return slopes


def released_clusters(distances, *, most=150):
    """The released algorithm: scores of all k = 2 … `most`, the chosen k, and its labels from 1 on."""
    from kneed import KneeLocator

    rows = [[value / max(row) for value in row] for row in distances]
    tree = linkage(pdist(rows), method="ward", optimal_ordering=True)
    counts, scores, cuts = [], [], []
    for clusters in range(2, most + 1):
        labels = fcluster(tree, t=clusters, criterion="maxclust")
        counts.append(clusters)
        scores.append(score(rows, labels))
        cuts.append(labels)
    found = KneeLocator(counts, fourth_order_gradient(scores), curve="concave", direction="increasing").knee
    return scores, found, cuts[found - 2]


def medoid(distances, members):
    """The member with the smallest sum of distances to the others."""
    return min(members, key=lambda one: sum(distances[one][other] for other in members))


def jaccard(one, other):
    """|A ∩ B| / |A ∪ B| of two lists."""
    return len(set(one) & set(other)) / len(set(one) | set(other))


def disagreement(values, kind):
    """Mean over all pairs of different images: ½ (a − b)², 1 − cos(a − b) in degrees, or whether they differ."""
    from math import cos, isnan, radians

    known = [value for value in values if not isnan(value)]
    pairs = [(a, b) for place, a in enumerate(known) for b in known[place + 1 :]]
    of = {
        "number": lambda a, b: (a - b) ** 2 / 2,
        "angle": lambda a, b: 1 - cos(radians(a - b)),
        "category": lambda a, b: float(a != b),
    }[kind]
    return sum(of(a, b) for a, b in pairs) / len(pairs)


def unsafe_set(distances, clusters, quotas, limit):
    """Step 4 of HUDD: the nearest image first, each to its cluster until that has its quota; places, nearest first."""
    chosen, taken = [], dict.fromkeys(clusters, 0)
    for image in sorted(range(len(distances)), key=lambda place: distances[place]):
        if distances[image] <= limit and taken[clusters[image]] < quotas[clusters[image] - 1]:
            taken[clusters[image]] += 1
            chosen.append(image)
    return chosen
