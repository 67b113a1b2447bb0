"""hypothesis strategies for the values of karenina. Everything that they make is valid, and much of it is odd.

They are part of the extra `karenina-core[testing]`.
"""

from __future__ import annotations

from .. import examples  # noqa: F401  # first: without hypothesis it says what to install
from .benchmarks import agentic_traits as agentic_traits
from .benchmarks import benchmarks as benchmarks
from .benchmarks import callable_traits as callable_traits
from .benchmarks import dynamic_rubrics as dynamic_rubrics
from .benchmarks import filled_templates as filled_templates
from .benchmarks import fillings_of as fillings_of
from .benchmarks import llm_traits as llm_traits
from .benchmarks import metric_traits as metric_traits
from .benchmarks import questions as questions
from .benchmarks import regex_traits as regex_traits
from .benchmarks import rubrics as rubrics
from .benchmarks import template_handles as template_handles
from .benchmarks import template_specs as template_specs
from .benchmarks import traits as traits
from .models import effects as effects
from .models import llm_responses as llm_responses
from .models import manual_answers as manual_answers
from .models import messages as messages
from .models import model_configs as model_configs
from .models import plan_requests as plan_requests
from .models import retry_policies as retry_policies
from .models import usage as usage
from .models import verification_configs as verification_configs
from .results import cached_answers as cached_answers
from .results import identities as identities
from .results import results as results
from .results import rubric_parts as rubric_parts
from .results import traces as traces
from .values import json_objects as json_objects
from .values import json_values as json_values
from .values import names as names
from .values import of_type as of_type
from .values import texts as texts
