const label = Buffer.from('"next_batch":');
const quote = '"'.charCodeAt(0);

/** Returns the token for the next sync without parsing the response; `undefined` when there is none. */
export function nextBatch(answer: Buffer): string | undefined {
  const labelStart = answer.indexOf(label);
  if (labelStart < 0) return undefined;
  const start = answer.indexOf(quote, labelStart + label.length) + 1;
  return answer.toString('latin1', start, answer.indexOf(quote, start));
}
