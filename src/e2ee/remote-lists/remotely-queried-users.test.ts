import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RemotelyQueriedUsers } from './remotely-queried-users.ts';

describe('RemotelyQueriedUsers', () => {
  it('take() returns true only at the first call for an added user', () => {
    const queried = new RemotelyQueriedUsers();
    queried.add(['@bob:elsewhere']);
    assert.deepEqual([queried.take('@bob:elsewhere'), queried.take('@bob:elsewhere')], [true, false]);
    assert.equal(queried.take('@carol:elsewhere'), false);
  });

  it('take() returns true for every user after more than 10,000 users were added', () => {
    const queried = new RemotelyQueriedUsers();
    queried.add(Array.from({ length: 10_001 }, (_, number) => `@${number}:elsewhere`));
    assert.equal(queried.take('@carol:elsewhere'), true);
  });
});
