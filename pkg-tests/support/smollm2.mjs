// Prompts for SmolLM2, and what its exact logits, of an independent pass in NumPy, answer greedily.

export const requests = [
  { request: 'The capital of France is', max_tokens: 32 },
  { request: [{ role: 'user', content: 'Name three primary colors.' }], max_tokens: 32 },
];

export const exact = [
  {
    tokens: [
      7042, 30, 198, 198, 504, 2988, 314, 42, 216, 34, 32, 33, 40, 29, 32, 33, 29, 34, 34, 216, 33, 34, 42, 33, 34, 42, 37,
      35, 30,
    ],
    text: ' Paris.\n\nThe answer is: 2018-01-22 12:12:53.',
    finish_reason: 'stop',
  },
  {
    tokens: [504, 3003, 4683, 359, 42, 3950, 28, 10062, 28, 284, 13581, 30],
    text: 'The primary colors are: Red, Blue, and Yellow.',
    finish_reason: 'stop',
  },
];
