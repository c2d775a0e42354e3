import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '../json.ts';
import {
  compareReplacements,
  isValidReplacement,
  latestReplacement,
  type ReplacementEvent,
} from './replacements.ts';

function event(more: Partial<ReplacementEvent> = {}): ReplacementEvent {
  return {
    eventId: '$original',
    roomId: '!r:x',
    type: 'm.room.message',
    stateKey: undefined,
    sender: '@alice:x',
    content: { body: 'cake' },
    originServerTs: 0,
    ...more,
  };
}

const editContent = (
  eventId = '$original',
  more: JsonObject = { 'm.new_content': { body: 'new' } },
): JsonObject => ({
  body: '* new',
  'm.relates_to': { rel_type: 'm.replace', event_id: eventId },
  ...more,
});

const edit = (more: Partial<ReplacementEvent> = {}) =>
  event({ eventId: '$edit', content: editContent(), ...more });
const encrypted = { type: 'm.room.encrypted' };

describe('isValidReplacement', () => {
  const cases: [why: string, original: ReplacementEvent, edit: ReplacementEvent, expected: boolean][] = [
    ['a plain edit', event(), edit(), true],
    ['an edit of something else', event(), edit({ content: editContent('$other') }), false],
    ['an edit in another room', event(), edit({ roomId: '!s:x' }), false],
    ['an edit by another sender', event(), edit({ sender: '@bob:x' }), false],
    ['an edit of another event type', event(), edit({ type: 'm.sticker' }), false],
    ['an edit of a state event', event({ stateKey: '' }), edit(), false],
    ['a state event as edit', event(), edit({ stateKey: '' }), false],
    ['an edit of an edit', event({ content: editContent('$first') }), edit(), false],
    [
      'an edit of a thread reply',
      event({ content: { 'm.relates_to': { rel_type: 'm.thread', event_id: '$t' } } }),
      edit(),
      true,
    ],
    ['an edit without m.new_content', event(), edit({ content: editContent('$original', {}) }), false],
    ['a redacted edit', event(), edit({ content: {} }), false],
    [
      'an event with another relation',
      event(),
      edit({
        content: { 'm.relates_to': { rel_type: 'm.thread', event_id: '$original' }, 'm.new_content': {} },
      }),
      false,
    ],
    [
      'an encrypted edit of an encrypted event',
      event(encrypted),
      edit({ ...encrypted, content: editContent('$original', {}) }),
      true,
    ],
    [
      'an encrypted edit of cleartext',
      event(),
      edit({ ...encrypted, content: editContent('$original', {}) }),
      false,
    ],
    ['a cleartext edit of an encrypted event', event(encrypted), edit(), false],
  ];
  for (const [why, original, candidate, expected] of cases) {
    it(`returns ${expected} for ${why}`, () =>
      assert.equal(isValidReplacement(original, candidate), expected));
  }
});

describe('latestReplacement', () => {
  const at = (originServerTs: number, eventId: string) => edit({ originServerTs, eventId });

  it('returns the edit with the highest timestamp, and at equal timestamps the edit with the largest event id', () => {
    const edits = [at(1, '$z'), at(3, '$a'), at(3, '$b'), at(2, '$y')];
    assert.equal(latestReplacement(event(), false, edits)?.eventId, '$b');
    assert.equal(latestReplacement(event(), false, edits.toReversed())?.eventId, '$b');
  });

  it('skips invalid replacements', () => {
    const edits = [at(1, '$a'), edit({ originServerTs: 9, sender: '@bob:x' })];
    assert.equal(latestReplacement(event(), false, edits)?.eventId, '$a');
  });

  it('returns undefined if the original is redacted or has no replacements', () => {
    assert.equal(latestReplacement(event(), true, [at(1, '$a')]), undefined);
    assert.equal(latestReplacement(event(), false, []), undefined);
  });

  it('agrees with the order of compareReplacements', () => {
    const candidate = fc.record({
      originServerTs: fc.nat(3),
      eventId: fc.constantFrom('$a', '$b', '$A', '$c'),
    });
    fc.assert(
      fc.property(fc.array(candidate, { minLength: 1 }), (candidates) => {
        const edits = candidates.map(({ originServerTs, eventId }) => at(originServerTs, eventId));
        const last = edits.toSorted(compareReplacements).at(-1)!;
        const latest = latestReplacement(event(), false, edits)!;
        assert.deepEqual([latest.originServerTs, latest.eventId], [last.originServerTs, last.eventId]);
      }),
    );
  });
});
