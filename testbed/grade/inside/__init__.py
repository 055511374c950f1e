"""What runs behind the wall: ``zygote`` is a warm interpreter that knows no secret; each ``cell`` is
a fork of it that raises the wall (``seal``) and only then loads the code of a submission.

Nothing here is imported by the grader. A cell says what a protocol does, never how good that is.
"""
