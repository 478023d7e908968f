"""Downloads of the official sources over a loopback server: from nothing to rows, cut, changed, missing, offline."""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import tarfile
import threading
from pathlib import Path

import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.ratings import downloads, mlqe, mqm, webnlg
from bleurt_repro.datasets_builders.ratings.downloads import Source, download, wmt_sources
from bleurt_repro.datasets_builders.ratings.mlqe import MlqePe
from bleurt_repro.datasets_builders.ratings.mqm import MqmRatings
from bleurt_repro.datasets_builders.ratings.relative_ranks import WmtRelativeRanks
from bleurt_repro.datasets_builders.ratings.webnlg import WebNlgRatings
from bleurt_repro.datasets_builders.ratings.wmt import TARGET_YEARS, WmtRatings


class Server(http.server.ThreadingHTTPServer):
    """Serves bytes by path, answers ranges, and can cut an answer short once."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, int] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        ranged = self.headers.get("Range")
        self.server.requests.append((self.path, ranged))
        content = self.server.files.get(self.path)
        start = int(ranged.removeprefix("bytes=").rstrip("-")) if ranged else 0
        if content is None or start >= len(content):
            self.send_error(404 if content is None else 416)
            return
        self.send_response(206 if ranged else 200)
        self.send_header("Content-Length", str(len(content) - start))
        if ranged:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        end = self.server.cut.pop(self.path, len(content))
        self.wfile.write(content[start:end])
        self.wfile.flush()
        if end < len(content):
            self.connection.close()

    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.DOWNLOADED_DATASETS_PATH", str(tmp_path / "downloads"))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def archive(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def daseg(year, prefix):
    lines = {"source": "Eins\nZwei\n", "reference": "One\nTwo\n", "mt-system": "Won\nTo\n", "human": "0.5\n-0.5\n"}
    return archive({f"{prefix}newstest{year}.{name}.de-en": text.replace("\n", f" {year}\n") for name, text in lines.items()} | {f"{prefix}newstest{year}.human.de-en": lines["human"]})  # fmt: skip


def texts(year):
    return {
        f"txt/sources/newstest{year}-deen-src.de": f"Drei {year}\n",
        f"txt/references/newstest{year}-deen-ref.en": f"Three {year}\n",
        f"txt/system-outputs/newstest{year}.A.1.de-en": f"Tree {year}\n",
        f"txt/system-outputs/newstest{year}.B.2.de-en": f"Free {year}\n",
    }


def ad_seg_scores(suffix=""):
    return f"SYS SID RAW.SCR Z.SCR N\nA.1{suffix} 1 80 0.5 2\nB.2{suffix} 1 40 -0.5 1\n"


def news_systems_xml(year):
    def seg(text):
        return f'<p><seg id="1">{text} {year}</seg></p>'

    return (
        f'<dataset><doc id="a"><src lang="de">{seg("Vier")}</src><ref lang="en" translator="A">{seg("Four")}</ref>'
        f'<hyp system="A">{seg("For")}</hyp><hyp system="B">{seg("Far")}</hyp></doc></dataset>'
    ).encode()


@pytest.fixture
def wmt(server, monkeypatch):
    """The official sources in small, at loopback addresses: own sentences in the layout of the archives."""
    nested = archive({f"wmt17-submitted-data/{path}": text for path, text in texts(2017).items()})
    ranks17 = "LP DATA SYSTEM SID HUMAN\nde-en newstest2017 A.1 1 0.5\nde-en newstest2017 B.2 1 -0.5\n"
    package17 = {"manual-evaluation/DA-seglevel.csv": ranks17, "input/wmt17-metrics-task-no-hybrids.tgz": nested}
    contents = {
        2015: [daseg(2015, "DAseg-wmt-newstest2015/")],
        2016: [daseg(2016, "DAseg-wmt-newstest2016/DAseg.")],
        2017: [archive(package17)],
    }
    for year in (2018, 2019):
        ratings = {f"newstest{year}-humaneval/analysis/ad-seg-scores-de-en.csv": ad_seg_scores()}
        contents[year] = [archive(ratings), archive(texts(year))]
    table = {}
    for year, sources in downloads.WMT_ARCHIVES.items():
        table[year] = []
        for source, content in zip(sources, contents[year], strict=True):
            server.files[f"/{source.path}"] = content
            sha256 = hashlib.sha256(content).hexdigest()
            table[year].append(Source(f"{server.url}/{source.path}", source.path, sha256, source.nested))
    monkeypatch.setattr(downloads, "WMT_ARCHIVES", table)
    repositories = {}
    for year, (_, ratings, xml) in downloads.WMT_RATINGS.items():
        repositories[year] = (f"{server.url}/wmt{year}", ratings, xml)
        server.files[f"/wmt{year}/{ratings.format(lp='de-en')}"] = ad_seg_scores().encode()
        server.files[f"/wmt{year}/{xml.format(lp='de-en')}"] = news_systems_xml(year)
    monkeypatch.setattr(downloads, "WMT_RATINGS", repositories)
    return server


YEARS = [2015] * 2 + [2016] * 2 + [2017] * 2 + [2018] * 2 + [2019] * 2 + [2021] * 2 + [2022] * 2


@pytest.mark.filterwarnings("ignore:no ratings of 2020", "ignore:the ratings of WMT 2020")
def test_one_line_goes_from_nothing_to_rows_of_all_years(wmt, tmp_path):
    builder = WmtRatings("2022", language_pairs=["de-en"], validation_ratio=0, cache_dir=str(tmp_path / "built"))
    builder.download_and_prepare()
    data = builder.as_dataset()
    assert [*data["train"]["year"], *data["test"]["year"]] == YEARS
    assert list(data["test"]["candidate"]) == ["For 2022", "Far 2022"]
    assert {row["candidate"] for row in data["train"] if row["year"] == 2017} == {"Tree 2017", "Free 2017"}
    assert builder.info.download_size > 1_000 and str(builder.info.version) == "1.1.0"
    requests = len(wmt.requests)
    again = WmtRatings("2022", language_pairs=["de-en"], validation_ratio=0, cache_dir=str(tmp_path / "built"))
    assert again.splits() == {name: rows.to_list() for name, rows in data.items()}
    assert len(wmt.requests) == requests  # nothing is downloaded twice


def test_one_command_writes_the_rows(wmt, tmp_path):
    with pytest.raises(SystemExit) as end:
        main(["data", "wmt", "--config-name", "2018", "--language-pairs", "de-en", "--output", str(tmp_path / "out")])
    assert end.value.code == 0
    rows = [json.loads(line) for line in (tmp_path / "out/test.jsonl").read_text().splitlines()]
    assert [row["candidate"] for row in rows] == ["Tree 2018", "Free 2018"]


def test_relative_ranks_need_their_year_alone(wmt):
    pairs = WmtRelativeRanks("2019", language_pairs=["de-en"]).splits()["test"]
    assert [(pair["candidate_better"], pair["candidate_worse"]) for pair in pairs] == [("Tree 2019", "Free 2019")]
    assert {path.split("/")[1] for path, _ in wmt.requests} == {"wmt19"}


def test_rows_can_be_streamed(wmt):
    rows = WmtRelativeRanks("2018", language_pairs=["de-en"]).as_streaming_dataset(split="test")
    assert [row["candidate_better"] for row in rows] == ["Tree 2018"]


def test_a_cut_download_is_resumed(wmt, tmp_path):
    [source] = downloads.WMT_ARCHIVES[2015]
    content = wmt.files[f"/{source.path}"]
    partial = tmp_path / "downloads/bleurt_repro" / f"{source.path}.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(content[:100])  # of a process that was killed
    wmt.cut[f"/{source.path}"] = 200  # and the connection breaks once more
    [folder] = download([source])
    assert [ranged for _, ranged in wmt.requests] == ["bytes=100-", "bytes=100-"]
    assert (folder / "DAseg-wmt-newstest2015.tar.gz").read_bytes() == content and not partial.exists()


def test_a_download_that_was_complete_but_for_its_name_is_not_an_error(wmt, tmp_path):
    [source] = downloads.WMT_ARCHIVES[2015]
    partial = tmp_path / "downloads/bleurt_repro" / f"{source.path}.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(wmt.files[f"/{source.path}"])
    assert download([source])[0].is_dir()


def test_a_changed_file_is_named_and_not_used(wmt, tmp_path):
    [source] = downloads.WMT_ARCHIVES[2016]
    wmt.files[f"/{source.path}"] += b"x"
    with pytest.raises(ValueError, match=rf"{source.url} has changed .* expected the SHA-256 {source.sha256}, found "):
        download([source])
    assert not list((tmp_path / "downloads").rglob("*.partial")) and not list((tmp_path / "downloads").rglob("*.gz"))


def test_an_archive_that_is_none_is_removed(server, tmp_path):
    server.files["/a.tgz"] = b"<html>moved</html>"
    with pytest.raises(ValueError, match=r"a\.tgz cannot be unpacked .* was removed: try again"):
        download([Source(f"{server.url}/a.tgz", "a/a.tgz")])
    server.files["/a.tgz"] = archive({"text.txt": "good"})
    assert (download([Source(f"{server.url}/a.tgz", "a/a.tgz")])[0] / "a.tgz.unpacked/text.txt").read_text() == "good"


def test_a_full_disk_is_no_fault_of_the_archive(server, tmp_path, monkeypatch):
    server.files["/a.tgz"] = archive({"text.txt": "good"})
    with monkeypatch.context() as patch:
        patch.setattr(
            "tarfile.TarFile.extractall", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left"))
        )
        with pytest.raises(OSError, match=r"a\.tgz\.unpacking"):
            download([Source(f"{server.url}/a.tgz", "a/a.tgz")])
    server.files.clear()  # what was downloaded is still there
    assert (download([Source(f"{server.url}/a.tgz", "a/a.tgz")])[0] / "a.tgz.unpacked/text.txt").read_text() == "good"


def test_an_archive_writes_nothing_outside_its_folder(server, tmp_path):
    server.files["/a.tgz"] = archive({"../../../escaped.txt": "bad"})
    with pytest.raises(ValueError, match="cannot be unpacked"):
        download([Source(f"{server.url}/a.tgz", "a/a.tgz")])
    assert not list(tmp_path.rglob("escaped.txt"))


@pytest.mark.parametrize("answer", ["missing", "no server"])
def test_an_error_names_the_address_and_what_to_do(server, answer):
    url = f"{server.url}/none.csv" if answer == "missing" else "http://127.0.0.1:9/none.csv"
    reason = "the server answered 404" if answer == "missing" else ".*onnect.*"
    with pytest.raises(FileNotFoundError, match=f"{url} cannot be downloaded: {reason}; .* as data_dir"):
        download([Source(url, "a/none.csv")])


def test_offline_nothing_is_asked_for(server, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(FileNotFoundError, match=r"a\.csv cannot be downloaded: .* as data_dir"):
        download([Source(f"{server.url}/a.csv", "a/a.csv")])
    assert not server.requests


def test_webnlg_is_downloaded(server, monkeypatch):
    package = {
        "MRs.txt": "Fox | sleepsIn | Den\n",
        "sample-ids.txt": "7\n",
        "gold-sample-reference0.lex": "the fox sleeps .\n",
        "gold-sample-reference1.lex": "\n",
        "all_data_final_averaged.csv": (
            "mr,team,text,fluency,grammar,semantics,category,triplesize,type\n"
            "Fox | sleepsIn | Den,adapt,fox sleeps .,2.5,3,1.5,Animal,1triple,seen\n"
        ),
    }
    server.files["/webnlg.tar.gz"] = archive({f"webnlg-master/{name}": text for name, text in package.items()})
    source = Source(f"{server.url}/webnlg.tar.gz", "webnlg/webnlg-human-evaluation-master.tar.gz")
    monkeypatch.setattr(webnlg, "WEBNLG", source)
    [row] = WebNlgRatings().splits()["test"]
    assert (row["segment_id"], row["system"], row["candidate"]) == (7, "adapt", "fox sleeps .")


def test_mlqe_is_downloaded_by_one_command(server, monkeypatch, tmp_path):
    header = "index\toriginal\ttranslation\tscores\tmean\tz_scores\tz_mean\tmodel_scores\n"
    for name, prefix in (("train", "train"), ("dev", "dev"), ("test", "test20")):
        for lp in ("ro-en", "et-en"):
            line = f"0\tUnu.\t{lp} {name}.\t[80, 90]\t85\t[0, 1]\t0.5\t-1\n"
            ratings = {f"{lp}-{name}/{prefix}.{lp.replace('-', '')}.df.short.tsv": header + line}
            server.files[f"/data/direct-assessments/{name}/{lp}-{name}.tar.gz"] = archive(ratings)
            edits = archive({f"{lp}-{name}/{prefix}.pe": f"{lp} edited .\n"})
            server.files[f"/data/post-editing/{name}/{lp}-{name}.tar.gz"] = edits
    monkeypatch.setattr(mlqe, "MLQE_PE", server.url)
    MlqePe("et-en").splits()  # its archives stand beside those of the other pair
    server.cut["/data/post-editing/dev/ro-en-dev.tar.gz"] = 60
    output = str(tmp_path / "out")
    with pytest.raises(SystemExit) as end:
        main(["data", "mlqe", "--config-name", "ro-en", "--output", output])
    assert end.value.code == 0
    assert [path for path, _ in server.requests].count("/data/post-editing/dev/ro-en-dev.tar.gz") == 2
    [row] = [json.loads(line) for line in (tmp_path / "out/test.jsonl").read_text().splitlines()]
    assert (row["candidate"], row["reference"], row["n_annotations"]) == ("ro-en test.", "ro-en edited .", 2)


def test_marked_errors_are_downloaded(server, monkeypatch):
    columns = "system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity"
    rows = [
        f"{system}\td\t1\t{segment}\tr1\tYi.\tOne.\tStyle/Awkward\t{severity}"
        for segment in (1, 2)
        for system, severity in (("A.1", "Major"), ("B.2", "Minor"), ("Human-A.0", "Minor"))
    ]
    server.files["/newstest2020/zhen/mqm_newstest2020_zhen.tsv"] = "\n".join([columns, *rows]).encode()
    monkeypatch.setattr(mqm, "MQM", server.url)
    splits = MqmRatings("2020-zh-en").splits()
    assert [row["raw_score"] for rows in splits.values() for row in rows] == [-5.0, -1.0, -5.0, -1.0]


@pytest.mark.filterwarnings("ignore:no ratings of")
def test_out_of_english_2017_is_downloaded_too(wmt, monkeypatch):
    monkeypatch.setattr(downloads, "WMT17_RATINGS", f"{wmt.url}/copy")
    wmt.files["/copy/newstest2017-humaneval/analysis/ad-seg-scores-en-cs.csv"] = ad_seg_scores().encode()
    with pytest.raises(FileNotFoundError, match="no file newstest2017-encs-src.en"):
        WmtRatings("2018", language_pairs=["en-cs"]).splits()


def test_every_year_but_2020_has_addresses_and_each_file_a_place_of_its_own():
    with pytest.warns(UserWarning, match="ratings of WMT 2020 are left out, since .* as data_dir"):
        sources = wmt_sources(range(2015, 2023), ["*-en"])
    assert {Path(source.path).parts[0] for source in sources} == {
        f"wmt{year}" for year in (15, 16, 17, 18, 19, 21, 22)
    }
    assert len({source.path for source in sources}) == len({source.url for source in sources}) == len(sources)
    assert all(source.url.startswith(("https://", "http://ufallab")) for source in sources)
    assert sum(source.sha256 is not None for source in sources) == len(downloads.SHA256)
    lp_files = [source.url.rpartition("/")[2] for source in wmt_sources([2022], ["liv-en"])]
    assert lp_files == ["ad-seg-scores-lv-en.csv", "wmttest2022.liv-en.all.xml"]
    assert TARGET_YEARS[-1] == "2022"
