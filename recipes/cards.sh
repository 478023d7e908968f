#!/bin/sh
# Draw the cards in the repository from docs/results: those of the checkpoints, then that of the Space, which repeats mini's figures.
#
#     sh recipes/cards.sh
set -eu
cd "$(dirname "$0")/.."
# english NAME ENCODER SUFFIX: the card of a checkpoint that base.yaml or mini.yaml made; SUFFIX ends the names of its results
english() {
    bleurt-repro card "metric/checkpoint/bleurt-repro-$1" \
        --training "docs/results/$1-pretraining.json" --training "metric/checkpoint/bleurt-repro-$1/results.json" \
        --results docs/results/mqm21.json --results docs/results/wmt22.json --results "docs/results/wmt18$3.json" \
        --results "docs/results/webnlg$3.json" --results "docs/results/sanity$3.json" --results "docs/results/adversarial$3.json" \
        --results "docs/results/reliability-$1.json" \
        --recipe docs/explanation/how-the-checkpoints-are-made.md --license apache-2.0 --base-model "sentence-transformers/$2" \
        --dataset wikimedia/wikipedia --dataset Helsinki-NLP/tatoeba --dataset nyu-mll/multi_nli --dataset stanfordnlp/snli \
        --domain "news and other text translated into English; data-to-text as measured below; untested elsewhere." \
        --data-terms "ratings of the WMT shared tasks of 2015 to 2022, published for research without a licence; cite their findings papers. Ratings of MLQE-PE (CC0 1.0) and of TRECVID captions (no licence stated; cite Lebron et al., 2022). Constructed pairs are made from Wikipedia (CC BY-SA), Tatoeba (CC BY 2.0 FR), the GNOME and Python manuals and a table of paraphrases (Apache-2.0). Entailment pairs are of MNLI, SNLI (CC BY-SA), counterfactual SNLI (Apache-2.0) and ConjNLI (MIT)."
}
english mini all-MiniLM-L6-v2 ""
english base all-mpnet-base-v2 -base
bleurt-repro card metric/checkpoint/bleurt-repro-multi --training metric/checkpoint/bleurt-repro-multi/results.json \
    --results docs/results/multi-wmt18.json --results docs/results/multi-mlqe.json --results docs/results/multi-mqm21-en-de.json \
    --results docs/results/multi-mqm21.json --results docs/results/multi-wmt22.json \
    --recipe docs/explanation/how-the-checkpoints-are-made.md --license mit --base-model intfloat/multilingual-e5-small \
    --language "en cs de et fi ru zh bn hi xh zu" \
    --known-language "ar bg ca da el es fa fil fr he hu id is it ja ko lt lv mk ms nb nl pl pt ro sh sk sl sv ta tr uk ur vi" \
    --domain "news, social media and encyclopedias in the languages below, in translations from and into English; untested elsewhere." \
    --data-terms "ratings of WMT 2017, 2018 and 2022 and their texts, published for research without a licence (cite their findings papers; system outputs of 2017 and 2018 from MENLI, MIT, and from AIPHES, Apache-2.0); MLQE-PE (CC0 1.0); FLORES of WMT 2021 (ratings without a licence, texts CC BY-SA 4.0); counterfactual SNLI (Apache-2.0), Wikipedia (CC BY-SA) and Tatoeba (CC BY 2.0 FR). The vocabulary was counted with wordfreq (Apache-2.0, its data CC BY-SA 4.0)."
bleurt-repro card metric/bleurt_repro
