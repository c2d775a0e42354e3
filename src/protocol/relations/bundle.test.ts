import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { bundleRelations } from './bundle.ts';

describe('bundleRelations', () => {
  const message = { stateKey: undefined };
  const thread = { latestEvent: { event_id: '$l' }, count: 7, currentUserParticipated: true };

  it('returns m.relations in the format of the specification', () => {
    const replacement = { event_id: '$edit' };
    assert.deepEqual(bundleRelations(message, { replacement, thread, references: ['$one', '$two'] }), {
      'm.replace': { event_id: '$edit' },
      'm.thread': { latest_event: { event_id: '$l' }, count: 7, current_user_participated: true },
      'm.reference': { chunk: [{ event_id: '$one' }, { event_id: '$two' }] },
    });
    assert.deepEqual(Object.keys(bundleRelations(message, { thread }) ?? {}), ['m.thread']);
  });

  it('returns undefined for an event without children and for state events', () => {
    assert.equal(bundleRelations(message, {}), undefined);
    assert.equal(bundleRelations(message, { references: [] }), undefined);
    assert.equal(bundleRelations({ stateKey: '' }, { thread }), undefined);
  });
});
