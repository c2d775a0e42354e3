import assert from 'node:assert/strict';
import type { OpenDatabase } from '../../../../test/support/databases/databases.ts';
import { FakeRemoteKeys, type RemoteUser } from '../../../../test/support/other-servers/remote-users.ts';
import { E2eeServer, type UserWithKeys } from '../../../../test/support/servers/e2ee-server.ts';
import type { JsonObject } from '../../../protocol/index.ts';
import type { RemoteDeviceLists } from '../remote-device-lists.ts';

type Keys = Record<string, Record<string, JsonObject>>;

/** A server with the user Alice, and a fake remote server with the user Bob. */
export class RemoteListsFixture {
  readonly server: E2eeServer;
  readonly remoteServer: FakeRemoteKeys;
  readonly lists: RemoteDeviceLists;
  readonly alice: UserWithKeys;
  readonly bob: RemoteUser;

  private constructor(server: E2eeServer, remoteServer: FakeRemoteKeys, alice: UserWithKeys) {
    this.server = server;
    this.remoteServer = remoteServer;
    this.lists = server.e2ee.remoteLists!;
    this.alice = alice;
    this.bob = remoteServer.addUser('@bob:elsewhere');
  }

  static async start(open: OpenDatabase): Promise<RemoteListsFixture> {
    const remoteServer = new FakeRemoteKeys();
    const server = await E2eeServer.start(open, { remote: remoteServer });
    return new RemoteListsFixture(server, remoteServer, await server.user('alice'));
  }

  /** Starts a fixture in which both users share a room, and Bob's device list is stored. */
  static async startSharingRoom(
    open: OpenDatabase,
  ): Promise<RemoteListsFixture & { readonly roomId: string }> {
    const fixture = await RemoteListsFixture.start(open);
    const roomId = await fixture.server.room(fixture.alice);
    await fixture.setMembership(fixture.bob.userId, roomId, 'join');
    await fixture.query();
    await fixture.fetchesDone();
    fixture.remoteServer.requests = [];
    return Object.assign(fixture, { roomId });
  }

  readonly setMembership = (userId: string, roomId: string, membership: string) =>
    this.server.rooms.engine.timeline.append(roomId, {
      type: 'm.room.member',
      stateKey: userId,
      sender: userId,
      content: { membership },
    });

  /** Advances the clock by ten seconds, and resolves when the fetches of this time are done. */
  readonly fetchesDone = async (): Promise<void> => {
    await this.lists.settled();
    this.server.server.clock.advance(10_000);
    await this.server.jobs.settled();
  };

  /** The keys of a user in the response to Alice's query. */
  readonly query = async (userId = this.bob.userId, devices: readonly string[] = []) => {
    const { status, body } = await this.server.call(this.alice, 'POST', '/keys/query', {
      device_keys: { [userId]: devices },
    });
    assert.equal(status, 200);
    return {
      hasEntry: userId in (body['device_keys'] as Keys),
      devices: (body['device_keys'] as Keys)[userId] ?? {},
      master: (body['master_keys'] as Record<string, JsonObject>)[userId],
      selfSigning: (body['self_signing_keys'] as Record<string, JsonObject>)[userId],
      failures: Object.keys(body['failures'] as object),
    };
  };

  /** The ids of Bob's devices in the response to Alice's query. */
  readonly deviceIds = async () => Object.keys((await this.query()).devices).sort();

  /** The users in Alice's device list changes since a position. */
  readonly changedSince = async (since: number) =>
    (await this.server.e2ee.deviceLists.changes(this.alice.userId, since, this.server.position)).changed;
}
