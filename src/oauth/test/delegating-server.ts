import assert from 'node:assert/strict';
import { type ManualClock, manualClock } from '../../../test/support/clocks/manual-clock.ts';
import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { ApplicationService } from '../../../test/support/other-servers/application-service.ts';
import {
  ScriptedAuthenticationService,
  serviceSecret as secret,
} from '../../../test/support/other-servers/authentication-service.ts';
import { type ApiAnswer, startTestServer, type TestServer } from '../../../test/support/servers/server.ts';
import { createLogger } from '../../kernel/observability/index.ts';
import { ssoOptions } from '../../sso/test/sso-server.ts';

export const apiScope = 'urn:matrix:client:api:*';

interface Parts {
  readonly service: ScriptedAuthenticationService;
  readonly bridge: ApplicationService;
  readonly server: TestServer;
  readonly clock: ManualClock;
  readonly lines: string[];
}

/** A homeserver whose users log in at an authentication service, with an application service. */
export class DelegatingServer {
  readonly service: ScriptedAuthenticationService;
  /** The application service. */
  readonly bridge: ApplicationService;
  readonly server: TestServer;
  readonly clock: ManualClock;
  /** Lines that the homeserver has logged. */
  readonly lines: string[];
  #users = 0;

  private constructor({ service, bridge, server, clock, lines }: Parts) {
    this.service = service;
    this.bridge = bridge;
    this.server = server;
    this.clock = clock;
    this.lines = lines;
  }

  static async start(database: OpenDatabase['kind']): Promise<DelegatingServer> {
    const service = await ScriptedAuthenticationService.start();
    const bridge = await ApplicationService.start('irc');
    const clock = manualClock();
    const lines: string[] = [];
    const server = await startTestServer({
      database,
      clock,
      log: createLogger({ level: 'debug', destination: { write: (line) => void lines.push(line) } }),
      config: {
        accounts: {
          enable_3pid_changes: true,
          proto_authentication_service: { enabled: true, endpoint: service.endpoint, secret },
        },
        appservices: { app_service_config_files: [bridge.file] },
        server: { public_baseurl: 'https://test/' },
        sso: ssoOptions({
          oidc_providers: [{ idp_id: 'work', issuer: 'https://idp.example', client_id: 'hearth' }],
          cas_config: { enabled: true, server_url: 'https://cas.example' },
          saml2_config: { sp_config: { metadata: { local: ['/dev/null'] } } },
        }),
      },
    });
    return new DelegatingServer({ service, bridge, server, clock, lines });
  }

  async stop(): Promise<void> {
    await this.server.stop();
    await this.bridge.stop();
    await this.service.stop();
  }

  /** Sends a request of the authentication service. */
  provision(method: string, path: string, body?: object, token = secret): Promise<ApiAnswer> {
    return this.server.api(method, `/_synapse/mas/${path}`, { token, ...(body && { body }) });
  }

  /** Returns the user and the device of a token, or the status and the error code. */
  async whoami(token: string): Promise<unknown[]> {
    const { status, body } = await this.server.api('GET', '/_matrix/client/v3/account/whoami', { token });
    return status === 200 ? [body['user_id'], body['device_id']] : [status, body['errcode']];
  }

  /** Creates a user with a device and a token, as the authentication service does. */
  async newUser(scope = ''): Promise<{ localpart: string; token: string; userId: string }> {
    const localpart = `user${this.#users++}`;
    const token = `mat_${localpart}`;
    assert.equal((await this.provision('POST', 'provision_user', { localpart })).status, 201);
    await this.provision('POST', 'upsert_device', { localpart, device_id: 'PHONE', display_name: 'Phone' });
    const device = 'urn:matrix:client:device:PHONE';
    this.service.tokens.set(token, {
      active: true,
      scope: `openid ${apiScope} ${device} ${scope}`,
      username: localpart,
      expires_in: 300,
    });
    return { localpart, token, userId: `@${localpart}:test` };
  }
}
