#!/bin/sh
# Draw the cards in the repository from docs/results: those of the two checkpoints, then that of the Space, which repeats mini's figures.
#
#     sh recipes/cards.sh
set -eu
cd "$(dirname "$0")/.."
results=docs/results
# card NAME ENCODER OPTIONS...
card() {
    name=$1
    encoder=$2
    shift 2
    bleurt-repro card "metric/checkpoint/$name" --training "metric/checkpoint/$name/results.json" \
        --results $results/mqm21.json --results $results/wmt22.json --recipe docs/explanation/how-the-checkpoints-are-made.md \
        --license apache-2.0 --base-model "sentence-transformers/$encoder" --dataset wikimedia/wikipedia \
        --dataset Helsinki-NLP/tatoeba "$@"
}
card bleurt-repro-mini all-MiniLM-L6-v2 \
    --results $results/webnlg.json --results $results/sanity.json --results $results/adversarial.json \
    --results $results/reliability-mini.json \
    --domain "news and other text translated into English; data-to-text as measured below; untested elsewhere." \
    --data-terms "ratings of the WMT shared tasks of 2015 to 2022, published for research without a licence; cite their findings papers. Ratings of MLQE-PE (CC0 1.0) and of TRECVID captions (no licence stated; cite Lebron et al., 2022). Constructed pairs are made from Wikipedia (CC BY-SA), Tatoeba (CC BY 2.0 FR), the GNOME and Python manuals and a table of paraphrases (Apache-2.0)."
card bleurt-repro-base all-mpnet-base-v2 \
    --results $results/wmt18-base.json --results $results/webnlg-base.json --results $results/sanity-base.json \
    --results $results/adversarial-base.json --results $results/reliability-base.json \
    --dataset nyu-mll/multi_nli --dataset stanfordnlp/snli --dataset sentence-transformers/stsb \
    --domain "news translated into English; data-to-text as measured below; untested elsewhere." \
    --data-terms "ratings of the WMT shared tasks, published for research; cite their findings papers. Synthetic pairs are made from WMT 2018, Wikipedia, MNLI and SNLI (CC BY-SA), counterfactual SNLI, Tatoeba (CC BY 2.0 FR), STS-B (CC BY-SA 4.0), the GNOME and Python manuals, and a table of paraphrases (Apache-2.0). Their translator also read Multi30k, whose captions are for non-commercial research."
bleurt-repro card metric/bleurt_repro
