"""The five questions, by the room that answers each."""

QUESTIONS = {
    "coverage": "Is my test set adequate?",
    "robustness": "Which inputs does it get right only by luck?",
    "classes": "Which classes does it mix up, or treat unequally?",
    "causes": "Why does it fail, and what should it be retrained on?",
    "lesions": "Which detected lesions are real?",
}
