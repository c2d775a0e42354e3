import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import { writeSigningKeys } from '../../src/protocol/index.ts';
import type { RoomTables } from '../../src/room-engine/tables.ts';
import { databaseOption } from '../support/databases/database-option.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { newSigningKey } from '../support/inputs/signing-key.ts';
import { type ConfiguredServer, startConfigured } from '../support/servers/configured-server.ts';

const localhost = { type: 'http', port: 0, bind_addresses: ['127.0.0.1'] };
const client = [{ names: ['client'] }];

let folder = '';
before(() => {
  folder = mkdtempSync(join(tmpdir(), 'hearth-options-'));
});
after(() => rmSync(folder, { recursive: true, force: true }));

let server: ConfiguredServer | undefined;

const start = async (options: Readonly<Record<string, unknown>>) => {
  const defaults = {
    server_name: 'unusual.example',
    database: { name: 'sqlite3', args: { database: ':memory:' } },
    enable_registration: true,
    enable_registration_without_verification: true,
    bcrypt_rounds: 4,
  };
  server = await startConfigured(stringify({ ...defaults, ...options }), folder);
  return server;
};

/** Registers a user, who creates a room. */
async function makeRoom(base: string): Promise<{ userId: string; roomId: string }> {
  const post = async (path: string, body: object, token = '') => {
    const response = await fetch(`${base}/_matrix/client/v3${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    });
    const answer = (await response.json()) as Record<string, string>;
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer;
  };
  const { user_id, access_token } = await post('/register', {
    username: 'me',
    password: 'correct horse',
    auth: { type: 'm.login.dummy' },
  });
  const { room_id } = await post('/createRoom', {}, access_token);
  return { userId: user_id!, roomId: room_id! };
}

forSelectedDatabases(import.meta.url, (open) => {
  afterEach(() => server?.stop());

  it('stores data in the configured database, under the server name and signed with the configured key [option: server_name, signing_key_path, database.name, database.args.database, database.args.dbname, database.args.host, database.args.port, database.args.user]', async () => {
    const database = await open();
    const signing_key_path = join(folder, `${open.kind}.key`);
    writeFileSync(signing_key_path, writeSigningKeys([newSigningKey('unusual')]));
    const options = { signing_key_path, database: databaseOption(open.optionsOf(database)) };
    await database.close();
    const { addresses } = await start({ ...options, listeners: [{ ...localhost, resources: client }] });
    const { userId, roomId } = await makeRoom(addresses[0]!);
    assert.equal(userId, '@me:unusual.example');
    assert.match(roomId, /:unusual\.example$/);
    await server!.stop();

    const reopened = await open.restart(database);
    const rows = await reopened.reader<RoomTables>().selectFrom('events').select('json').execute();
    assert.ok(rows.length > 5);
    for (const { json } of rows) {
      const { signatures } = JSON.parse(json);
      assert.deepEqual(Object.keys(signatures['unusual.example']), ['ed25519:unusual']);
    }
  });
});

describe('listeners', () => {
  afterEach(() => server?.stop());

  it('listeners each have their configured compression, tag, forwarded addresses and request ids [option: listeners[].tag, listeners[].x_forwarded, listeners[].request_id_header, listeners[].resources[].compress]', async () => {
    const { addresses, log } = await start({
      enable_metrics: true,
      listeners: [
        {
          ...localhost,
          tag: 'behind-proxy',
          x_forwarded: true,
          request_id_header: 'X-Trace',
          resources: [{ names: ['metrics'], compress: true }],
        },
        { ...localhost, tag: 'plain', resources: [{ names: ['metrics'] }] },
      ],
    });
    const encodings = await Promise.all(
      addresses.map(async (address) => {
        const headers = { 'x-forwarded-for': '203.0.113.9', 'x-trace': 'abc', 'accept-encoding': 'gzip' };
        const response = await fetch(`${address}/_synapse/metrics`, { headers });
        await response.text();
        return response.headers.get('content-encoding');
      }),
    );
    assert.deepEqual(encodings, ['gzip', null]);
    const requests = log.filter(({ msg }) => msg === 'Request');
    const requestOf = (name: string) => requests.find(({ listener }) => listener === name)!;
    assert.deepEqual(
      [requestOf('behind-proxy')['ip'], requestOf('behind-proxy')['request']],
      ['203.0.113.9', 'abc'],
    );
    assert.equal(requestOf('plain')['ip'], '127.0.0.1');
    assert.match(String(requestOf('plain')['request']), /^GET-\d+$/);
  });

  it('listeners serve metrics only when they are enabled [option: enable_metrics]', async () => {
    const listeners = [{ ...localhost, type: 'metrics' }];
    const measurements = async (enable_metrics: boolean) => {
      const { addresses } = await start({ enable_metrics, listeners });
      const response = await fetch(`${addresses[0]}/_synapse/metrics`);
      const text = await response.text();
      await server!.stop();
      return [response.status, /^process_resident_memory_bytes /m.test(text)];
    };
    assert.deepEqual(await measurements(true), [200, true]);
    assert.deepEqual(await measurements(false), [404, false]);
  });
});
