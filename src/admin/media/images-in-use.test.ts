import assert from 'node:assert/strict';
import { it } from 'node:test';
import { forSelectedDatabases } from '../../../test/support/databases/databases.ts';
import { directoryMigrations } from '../../directory/index.ts';
import { streamMigrations } from '../../kernel/streams/index.ts';
import { profileMigrations } from '../../profiles/index.ts';
import { roomMigrations } from '../../room-engine/index.ts';
import { insertRoomRow } from '../test/room-row.ts';
import { ImagesInUse } from './images-in-use.ts';

forSelectedDatabases(import.meta.url, (open) => {
  it('ImagesInUse waits for pending changes of rooms, and then finds the avatar of a room and no other upload', async () => {
    const database = await open([
      ...streamMigrations,
      ...roomMigrations,
      ...directoryMigrations,
      ...profileMigrations,
    ]);
    const caughtUp = () => insertRoomRow(database, { room_id: '!meadow', avatar_url: 'mxc://test/flower' });
    const images = new ImagesInUse({ database, serverName: 'test', caughtUp });
    assert.deepEqual([...(await images.among(['flower', 'stone']))], ['flower']);
  });
});
