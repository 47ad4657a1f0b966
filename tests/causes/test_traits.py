import numpy as np
import pytest

from tests.references import causes as reference
from weakspot.causes.analysis import ErrorImages
from weakspot.causes.clusters import ClusterRecipe
from weakspot.causes.common_traits import common_traits
from weakspot.causes.parameters import Parameters
from weakspot.causes.reclustering import recluster
from weakspot.causes.traits import (
    adjusted_chance,
    border_text,
    disagreement,
    shared_traits,
    traits_text,
    typical_value,
)
from weakspot.core.errors import ConfigError


@pytest.mark.parametrize("kind", ["number", "angle", "category"])
def test_disagreement_is_the_mean_over_all_pairs(kind):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 5, (4, 9)).astype(float) * (90 if kind == "angle" else 1)
    rows[0, 3] = rows[1, :4] = np.nan
    assert disagreement(rows, kind) == pytest.approx([reference.disagreement(row, kind) for row in rows])


def test_the_disagreement_of_numbers_is_the_variance():
    values = np.random.default_rng(1).normal(size=30)
    assert disagreement(values, "number") == pytest.approx(values.var(ddof=1))
    assert np.isnan(disagreement(np.array([1.0, np.nan]), "number"))


def planted(count=300, seed=0):
    """A test set, and two clusters: images 0 to 14 have closed lids and look near 0°; 15 to 29 are in the rain."""
    rng = np.random.default_rng(seed)
    lid, gaze, weather = rng.random(count), rng.random(count) * 360, rng.choice(["sun", "fog", "rain"], count)
    lid[:15], gaze[:15] = rng.random(15) * 0.2, rng.normal(0, 10, 15) % 360
    weather[15:30] = "rain"
    columns = {"lid": lid, "gaze": gaze, "weather": weather, "noise": rng.normal(size=count)}
    return Parameters.of_columns(columns, angles=["gaze"]), [np.arange(15), np.arange(15, 30)]


def test_planted_traits_are_found_and_told():
    parameters, clusters = planted()
    traits = shared_traits(parameters, clusters)
    assert traits.shared.tolist() == [[True, True, False, False], [False, False, True, False]]
    assert traits.explained.tolist() == [True, True]
    lid = parameters.values[:, 0]
    assert traits.reduction[0, 0] == pytest.approx(1 - lid[:15].var(ddof=1) / lid.var(ddof=1))
    gaze = np.where(parameters.values[:15, 1] > 180, parameters.values[:15, 1] - 360, parameters.values[:15, 1])
    assert traits.typical[0, 1] % 360 == pytest.approx(gaze.mean() % 360, abs=0.1)  # that of angles, on a small arc
    closed, rain = (traits_text(traits, number, members) for number, members in enumerate(clusters))
    assert closed == f"lid {lid[:15].mean():.2g} instead of {lid.mean():.2g} on average; gaze near {gaze.mean():.0f}°"
    assert rain == f"weather 'rain' in 100% instead of {np.mean(parameters.values[:, 2] == 1):.0%}"


def test_a_parameter_that_varies_less_about_the_same_mean_is_told_as_such():
    values = np.concatenate([np.linspace(-0.1, 0.1, 20), np.linspace(-1, 1, 180)])
    parameters = Parameters.of_columns({"roll": values})
    traits = shared_traits(parameters, [np.arange(20)])
    assert traits_text(traits, 0, np.arange(20)).startswith("roll near")
    assert "instead of ± 0.5" in traits_text(traits, 0, np.arange(20))


def test_chance_explains_few_test_sets_of_small_clusters():
    """Four images vary less than half as much in some parameter in most draws; told as shared, in a twentieth."""
    reduced, explained, rng = 0, 0, np.random.default_rng(3)
    for seed in range(60):
        columns = {f"p{number}": rng.normal(size=200) for number in range(8)}
        columns["rare"] = (rng.random(200) < 0.05).astype(float)
        traits = shared_traits(Parameters.of_columns(columns), [np.arange(4), np.arange(4, 8)], seed=seed)
        reduced, explained = reduced + traits.reduced.any(), explained + traits.explained.any()
    assert reduced > 50
    assert explained <= 9  # 3 expected; more than 9 once in a thousand


def test_the_chance_is_that_of_the_least_likely_parameter():
    drawn = np.stack([np.arange(99.0), np.full(99, 0.5)], axis=1)
    assert adjusted_chance(np.array([98.5, 0.5]), drawn).tolist() == [0.01, 1.0]
    assert adjusted_chance(np.array([np.nan, 0.6]), drawn)[0] == 1.0


def test_constant_and_unknown_parameters_are_never_shared():
    columns = {"same": np.ones(50), "unknown": np.full(50, np.nan)}
    traits = shared_traits(Parameters.of_columns(columns), [np.arange(10)])
    assert not traits.shared.any()
    assert not traits.reduced.any()


def test_typical_values():
    assert typical_value(np.array([2.0, 1.0, 2.0]), "category") == 2
    assert typical_value(np.array([359.0, 1.0]), "angle") % 360 == pytest.approx(0, abs=1e-9)
    assert np.isnan(typical_value(np.array([np.nan]), "number"))


def test_borders_need_a_majority():
    assert border_text(["a → b", "c → d"]) == ""
    assert border_text(["output 1", "output 1"]) == ""


def test_angles_must_be_columns_of_numbers():
    with pytest.raises(ConfigError, match="did you mean 'gaze'"):
        Parameters.of_columns({"gaze": np.zeros(3)}, angles=["gase"])
    with pytest.raises(ConfigError, match="no column of numbers"):
        Parameters.of_columns({"weather": np.array(["a"])}, angles=["weather"])


def test_the_finding_keeps_what_is_known_of_the_whole_test_set(examined, splits):
    found, errors = examined["causes.root_causes"], examined["causes.errors"]
    images, test = ErrorImages.of_finding(found), splits["test"]
    metadata = test.read(np.arange(80)).metadata
    assert images.parameters.names == ("light", "turn", "weather")
    assert images.parameters.kinds == ("number", "angle", "category")
    assert images.parameters.values[:, 0].tolist() == metadata["light"].tolist()
    named = [images.parameters.categories[2][int(code)] for code in images.parameters.values[:, 2]]
    assert named == metadata["weather"].tolist()
    assert [test.ids[place] for place in images.places] == images.ids.tolist()
    assert errors.table["metadata.weather"].to_pylist() == metadata["weather"].tolist()
    assert set(found.summary) >= {"explained_clusters", "reduced_clusters", "share_to_inspect"}
    light = images.parameters.values[:, 0]
    own = light[images.places[found.arrays["image_cluster"] == 1]]
    assert found.arrays["trait_reduction"][0, 0] == pytest.approx(1 - own.var(ddof=1) / light.var(ddof=1))


def test_clustered_again_the_traits_are_those_of_the_new_clusters(examined):
    again = recluster(examined, ClusterRecipe(clusters=2), replicates=0)
    assert again.arrays["trait_reduction"].shape == (again.table.num_rows, 3)
    assert "shared" in again.table.column_names
    assert again.media.keys() == {f"cluster {number + 1}" for number in range(again.table.num_rows)}


def test_what_most_of_a_cluster_has_and_few_others_is_named():
    """Two thirds of a cluster are dark, like few others; its spread is as large as everybody's."""
    rng = np.random.default_rng(0)
    light, glasses = rng.uniform(0.7, 1.0, 300), rng.integers(0, 2, 300)
    light[:40] = rng.uniform(0.0, 0.1, 40)
    cluster = np.r_[:36, 100:118]
    parameters = Parameters.of_columns({"light": light, "glasses": glasses, "site": np.repeat(["a", "b"], [60, 240])})
    traits = shared_traits(parameters, [cluster])
    assert not traits.shared[0, 0]
    told = traits_text(traits, 0, cluster, common_traits(parameters, [cluster])[0])
    low = np.sort(light)[59]  # the sixtieth of 300
    inside = (light[cluster] <= low).mean()
    others = (np.delete(light, cluster) <= low).mean()
    assert told == f"light ≤ {low:.3g} in {inside:.0%} instead of {others:.0%}; site 'a' in 67% instead of 10%"


def test_chance_gives_no_common_traits():
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(200):
        parameters = Parameters.of_columns({f"p{n}": rng.random(200) for n in range(6)})
        found += any(common_traits(parameters, np.split(rng.permutation(200)[:60], 6)))
    assert found <= 10
