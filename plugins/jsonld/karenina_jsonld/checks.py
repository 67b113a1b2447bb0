"""What the conformance checks are given: a file that the loader reads."""

from __future__ import annotations

FILE = b"""{
  "@context": {"@vocab": "http://schema.org/"},
  "@type": "DataFeed",
  "name": "Enzymes",
  "dataFeedElement": [
    {
      "@type": "DataFeedItem",
      "item": {
        "@type": "Question",
        "text": "Which enzyme splits lactose?",
        "acceptedAnswer": {"@type": "Answer", "text": "lactase"},
        "hasPart": {
          "@type": "SoftwareSourceCode",
          "text": "class Answer(BaseAnswer):\\n    enzyme: str",
          "programmingLanguage": "Python"
        }
      }
    }
  ]
}
"""
OPTIONS = {"load_benchmark": {"files": {"enzymes.jsonld": FILE}}}
