import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { enc, type TestClient } from '../../../test/support/users/test-client.ts';
import { ServerOfThreeUsers } from './test/three-users.ts';

const type = 'org.example.location';

for (const database of selectedDatabases(import.meta.url)) {
  describe(`state that users own (MSC3757), on ${database}`, () => {
    const users = new ServerOfThreeUsers(database);

    /** Creates a room. Anna has power level 100, Ben 50 and Cleo 0. Level 0 suffices to send the state. */
    const createRoom = async (room_version: string) => {
      const { anna, ben, cleo } = users;
      const power_level_content_override = {
        users: { [anna.id]: 100, [ben.id]: 50 },
        events: { [type]: 0 },
      };
      const preset = 'public_chat';
      const roomId = await anna.createRoom({ room_version, power_level_content_override, preset });
      for (const user of [ben, cleo]) await user.join(roomId);
      return roomId;
    };
    const setter = (roomId: string) => async (user: TestClient, key: string) => {
      const path = `/rooms/${enc(roomId)}/state/${type}/${enc(key)}`;
      const { status, body } = await user.call('PUT', path, { at: user.id });
      return status === 200 ? 200 : `${status} ${body['errcode']}`;
    };

    for (const version of ['org.matrix.msc3757.10', 'org.matrix.msc3757.11']) {
      it(`accepts state keys with a suffix only from the owner and from users with a higher power level, in room version ${version}`, async () => {
        const { anna, ben, cleo } = users;
        const set = setter(await createRoom(version));
        for (const key of [cleo.id, `${cleo.id}_phone`, `${cleo.id}_`]) {
          assert.equal(await set(cleo, key), 200, key);
          assert.equal(await set(ben, key), 200, key);
        }
        for (const key of [ben.id, `${ben.id}_phone`]) {
          assert.equal(await set(cleo, key), '403 M_FORBIDDEN', key);
          assert.equal(await set(anna, key), 200, key);
        }
        assert.equal(await set(ben, `${anna.id}_phone`), '403 M_FORBIDDEN');
        for (const key of ['@', '@cleo', '@cleo_phone', `${cleo.id}-phone x`]) {
          assert.equal(await set(cleo, key), '400 M_BAD_JSON', key);
        }
        assert.equal(await set(cleo, 'anything'), 200);
      });
    }

    it('requires the id of the sender as the state key in other room versions', async () => {
      const { anna, cleo } = users;
      const set = setter(await createRoom('11'));
      assert.equal(await set(cleo, cleo.id), 200);
      for (const [user, key] of [
        [cleo, `${cleo.id}_phone`],
        [anna, cleo.id],
        [anna, '@cleo'],
      ] as const) {
        assert.equal(await set(user, key), '403 M_FORBIDDEN', key);
      }
    });
  });
}
