import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RemotelyQueriedUsers } from './remotely-queried-users.ts';

describe('users that were asked for', () => {
  it('are known until their list has come', () => {
    const asked = new RemotelyQueriedUsers();
    asked.add(['@bob:elsewhere']);
    assert.deepEqual([asked.take('@bob:elsewhere'), asked.take('@bob:elsewhere')], [true, false]);
    assert.equal(asked.take('@carol:elsewhere'), false);
  });

  it('are everybody when there are too many to remember', () => {
    const asked = new RemotelyQueriedUsers();
    asked.add(Array.from({ length: 10_001 }, (_, number) => `@${number}:elsewhere`));
    assert.equal(asked.take('@carol:elsewhere'), true);
  });
});
