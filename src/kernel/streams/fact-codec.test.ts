import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FactCodec, jsonFacts } from './index.ts';

interface Read {
  readonly userId: string;
  readonly threadId: string | undefined;
  readonly marks: readonly { readonly at: number }[];
}

/** Encodes a fact into text, and decodes it again. */
const encodeAndDecode = <F>(codec: FactCodec<F>, fact: F) =>
  codec.decode(JSON.parse(JSON.stringify(codec.encode(fact))));

describe('jsonFacts', () => {
  it('decodes an encoded fact to an equal one, including members whose value is undefined', () => {
    const codec: FactCodec<Read> = jsonFacts({ threadId: undefined });
    const facts: Read[] = [
      { userId: '@a:test', threadId: 'main', marks: [{ at: 1 }] },
      { userId: '@a:test', threadId: undefined, marks: [] },
    ];
    for (const fact of facts) assert.deepEqual(encodeAndDecode(codec, fact), fact);
    assert.equal(encodeAndDecode(jsonFacts<string>(), 'a word'), 'a word');
  });

  it('does not compile for facts that JSON cannot represent, or without the list of members that may be undefined', () => {
    // @ts-expect-error JSON does not hold maps.
    jsonFacts<{ readonly changes: ReadonlyMap<string, string> }>();
    // @ts-expect-error JSON does not hold bytes.
    jsonFacts<{ readonly key: Uint8Array }>();
    // @ts-expect-error `threadId` may be undefined.
    jsonFacts<Read>();
  });
});
