import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MatrixError } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { checkThreadRoot, summariseThread } from './threads.ts';

const relation = (rel_type: string, event_id: string): JsonObject => ({
  'm.relates_to': { rel_type, event_id },
});

describe('checkThreadRoot', () => {
  it('accepts events without relation, and replies', () => {
    checkThreadRoot({ body: 'x' });
    checkThreadRoot({ 'm.relates_to': { 'm.in_reply_to': { event_id: '$a' } } });
  });

  for (const relType of ['m.thread', 'm.replace', 'm.annotation', 'org.example']) {
    it(`refuses an event with the relation ${relType} with M_UNKNOWN`, () => {
      assert.throws(
        () => checkThreadRoot(relation(relType, '$a')),
        (error) => error instanceof MatrixError && error.status === 400 && error.errcode === 'M_UNKNOWN',
      );
    });
  }
});

describe('summariseThread', () => {
  const by = (sender: string, eventId = '$e') => ({ sender, eventId });

  it('counts the replies and returns the last as the latest event', () => {
    const replies = [by('@b:x', '$1'), by('@c:x', '$2')];
    assert.deepEqual(summariseThread(by('@a:x'), replies, '@d:x'), {
      latestEvent: replies[1],
      count: 2,
      currentUserParticipated: false,
    });
  });

  it('sets currentUserParticipated if the user sent the root or a reply', () => {
    const participated = (userId: string) =>
      summariseThread(by('@a:x'), [by('@b:x'), by('@c:x')], userId)?.currentUserParticipated;
    assert.deepEqual(['@a:x', '@b:x', '@d:x'].map(participated), [true, true, false]);
  });

  it('returns undefined for a thread without replies', () => {
    assert.equal(summariseThread(by('@a:x'), [], '@a:x'), undefined);
  });
});
