import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UsersWithoutSharedRoom } from './users-without-shared-room.ts';

describe('UsersWithoutSharedRoom', () => {
  it('contains a bounded number of users of each server and of all servers', () => {
    const users = new UsersWithoutSharedRoom(2, 3);
    const add = (...userIds: string[]) => userIds.map((userId) => users.add(userId));
    assert.deepEqual(add('@1:a', '@2:a', '@3:a', '@1:a'), [true, true, false, true]);
    assert.deepEqual(add('@1:b', '@2:b', '@1:c'), [true, false, false]);
    for (const userId of ['@1:a', '@1:a', '@unknown:a', '@1:unknown']) users.delete(userId);
    assert.equal(users.has('@1:a'), false);
    assert.deepEqual(add('@3:a', '@2:b'), [true, false]);
  });
});
