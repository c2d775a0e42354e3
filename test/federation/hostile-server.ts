import { after, before, beforeEach } from 'node:test';
import type { DatabaseOptions } from '../../src/kernel/database/index.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import {
  type FederatedServerOptions,
  SeveralServers,
  withoutRetries,
} from '../support/other-servers/several-servers.ts';
import { SignedRoom } from '../support/rooms/signed-room.ts';
import type { TestClient } from '../support/users/test-client.ts';

/**
 * The homeserver `a.test` with the user Anna, and the scripted server `evil.test`, which has a new room for each test. Both
 * servers start before the tests of a group and stop after them.
 */
export class HostileServer {
  anna!: TestClient;
  evil!: ScriptedServer;
  /** A public room of `evil.test`. */
  room!: SignedRoom;

  /** Must be called in the `describe` of the group. @param options of the homeserver */
  constructor(database: DatabaseOptions['kind'], options: FederatedServerOptions = withoutRetries) {
    let several: SeveralServers | undefined;
    before(async () => {
      const opened = await SeveralServers.withScriptedServer(database, 'evil.test', options);
      ({ several, peer: this.evil, anna: this.anna } = opened);
    });
    after(() => several?.stop());
    beforeEach(() => {
      this.room = new SignedRoom('11', { serverName: 'evil.test', key: this.evil.key });
      this.evil.receivedRequests.splice(0);
    });
  }
}
