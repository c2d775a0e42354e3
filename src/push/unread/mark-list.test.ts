import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { markList } from '../test/marks.ts';
import type { UnreadMark } from '../unread-mark.ts';
import { MarkList } from './mark-list.ts';

const marksOf = (list: MarkList): UnreadMark[] =>
  Array.from({ length: list.length }, (_, index) => list.at(index));

describe('MarkList', () => {
  it('has the same marks as an array with the same additions and removals, also when it is read from its stored form', () => {
    const mark = fc.record({
      highlight: fc.boolean(),
      threadId: fc.option(fc.constantFrom('$a', '$b'), { nil: undefined }),
      sentTs: fc.constantFrom(1, 5, 1_700_000_000_000.5, Number.POSITIVE_INFINITY),
    });
    const step = fc.oneof(
      { weight: 6, arbitrary: mark.map((fields) => ({ kind: 'push' as const, fields })) },
      fc.constant({ kind: 'shift' as const }),
      fc.nat(3).map((rest) => ({ kind: 'keep' as const, rest })),
      fc.constant({ kind: 'clear' as const }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, keepsTimes) => {
        const list = new MarkList(keepsTimes);
        let expected: UnreadMark[] = [];
        let stream = 0;
        for (const action of steps) {
          if (action.kind === 'push') {
            const pushed = { ...action.fields, stream: ++stream };
            list.push(pushed);
            expected.push(keepsTimes ? pushed : { ...pushed, sentTs: Number.POSITIVE_INFINITY });
          } else if (action.kind === 'shift') {
            list.shift();
            expected.shift();
          } else if (action.kind === 'keep') {
            list.keep((index) => list.streamAt(index) % 4 !== action.rest);
            expected = expected.filter((kept) => kept.stream % 4 !== action.rest);
          } else {
            list.clear();
            expected = [];
          }
          assert.deepEqual(marksOf(list), expected);
        }
        if (keepsTimes) assert.equal(list.bytes, markList(expected).bytes);
        assert.deepEqual(marksOf(MarkList.fromStored(JSON.parse(JSON.stringify(list.toStored())))), expected);
      }),
    );
  });
});
