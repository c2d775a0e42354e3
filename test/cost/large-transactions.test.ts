import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { authorize } from '../../src/federation-client/requests/request-signature.ts';
import { costAfterRetries, exceeds, threadCost } from '../support/clocks/thread-cost.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { registerAdmin } from '../support/users/register-admin.ts';

/** A transaction of useless data: `count` times the same item. */
const useless = (list: 'pdus' | 'edus', item: string, count: number) =>
  `{"${list}":[${Array(count).fill(item).join(',')}]}`;

/** A list of `count` empty objects, as JSON. */
const emptyObjects = (count: number) => `[${Array(count).fill('{}').join(',')}]`;

/** The fields of an object, as JSON: `count` different keys. */
const fields = (count: number) => Array.from({ length: count }, (_, index) => `"a${index}":1`).join(',');

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('large transactions of remote servers', () => {
    let several: SeveralServers;
    let server: FederatedServer;
    let evil: ScriptedServer;
    let port: number;
    before(async () => {
      several = new SeveralServers(kind);
      server = await several.homeserver('a.test');
      evil = await several.scripted('evil.test');
      const anna = await server.registerClient('anna');
      const roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      await (await ScriptedMember.join(evil, 'a.test', roomId, '@guest:evil.test')).say(
        'makes the key of evil.test known',
      );
      port = several.resolver.srv.get('_matrix-fed._tcp.a.test')![0]!.port;
    });
    after(() => several.stop());

    /**
     * Signs a transaction before the measurement.
     * @param signed the content that the signature covers
     * @param otherHeaders are added, and replace headers with the same names, also the one with the signature
     * @returns a function that sends the transaction and returns the status of the response
     */
    function prepared(
      content: string,
      signed = content,
      otherHeaders: Readonly<Record<string, string>> = {},
    ) {
      const path = `/_matrix/federation/v1/send/${randomUUID()}`;
      const parts = { method: 'PUT', uri: path, origin: evil.name, destination: 'a.test', content: signed };
      const bytes = Buffer.from(content);
      const headers = {
        authorization: authorize(parts, evil.key),
        'content-type': 'application/json',
        'content-length': bytes.length,
        ...otherHeaders,
      };
      return () =>
        new Promise<number>((resolve, reject) => {
          const options = { host: '127.0.0.1', port, servername: 'a.test', rejectUnauthorized: false };
          const sent = request({ ...options, method: 'PUT', path, headers }, (response) => {
            text(response).then(() => resolve(response.statusCode!), reject);
          });
          sent.on('error', reject);
          sent.end(bytes);
        });
    }

    it('answers 401 to eight concurrent requests of 12 MB without a valid Authorization header, using at most 500 ms of CPU', async () => {
      const content = useless('pdus', '{}', 4_000_000);
      for (const authorization of [
        '',
        'X-Matrix origin=evil.test',
        `X-Matrix origin="evil.test",destination="b.test",key="${evil.key.keyId}",sig="AAAA"`,
        'X-Matrix origin="evil.test",destination="a.test",key="ed25519:unknown",sig="AAAA"',
      ]) {
        const send = prepared(content, content, { authorization });
        // Most of this cost is the encryption by the sender.
        const cost = await costAfterRetries({ longest: 500, total: 500 }, async () => {
          const answers = await Promise.all(Array.from({ length: 8 }, () => send()));
          assert.deepEqual(answers, Array(8).fill(401));
        });
        assert.ok(cost.total <= 500, `${cost.total} ms`);
      }
    });

    for (const [name, content] of [
      ['events', useless('pdus', JSON.stringify({ a: JSON.parse(emptyObjects(11_000)) }), 50)],
      ['EDUs', useless('edus', `{"edu_type":"m.presence","content":{"push":${emptyObjects(5_000)}}}`, 100)],
      [
        'receipts',
        useless('edus', `{"edu_type":"m.receipt","content":{"!a:b":{"m.read":${emptyObjects(5_000)}}}}`, 100),
      ],
      ['unknown EDUs', useless('edus', `{"edu_type":"x","content":{"a":"${'x'.repeat(120_000)}"}}`, 100)],
      ['events of numbers', useless('pdus', JSON.stringify({ a: Array(32_000).fill(1) }), 50)],
      ['events of empty lists', useless('pdus', `{"a":[${Array(21_500).fill('[]').join()}]}`, 50)],
      ['EDUs of many fields', useless('edus', `{"edu_type":"x","content":{${fields(10_000)}}}`, 100)],
      [
        'EDUs of fractions',
        useless('edus', `{"edu_type":"x","content":{"a":[${Array(19_000).fill(1.5)}]}}`, 100),
      ],
    ] as const) {
      it(`accepts a signed transaction of useless ${name} with at most 200 ms of CPU in all and 50 ms without a pause`, async () => {
        const sends = Array.from({ length: 6 }, () => prepared(content));
        // The sender is a part of this process, so its CPU time counts as well.
        const allowed = { longest: 50, total: 200 };
        const cost = await costAfterRetries(allowed, async () => assert.equal(await sends.pop()?.(), 200));
        assert.ok(!exceeds(cost, allowed), `${cost.longest} ms at a time, ${cost.total} in all`);
      });
    }

    it('queues 10,000 to-device messages of one transaction with at most 200 ms of CPU in all and 50 ms without a pause', async () => {
      const admin = await registerAdmin(server);
      const userId = '@anna:a.test';
      const deviceIds = Array.from({ length: 500 }, (_, index) => `DEVICE${index}`);
      for (const device_id of deviceIds)
        await admin.request('POST', `/_synapse/admin/v2/users/${userId}/devices`, { device_id });
      const messages = { [userId]: Object.fromEntries(deviceIds.map((id) => [id, { body: 'x' }])) };
      let count = 0;
      const edu = () => {
        const content = { sender: '@guest:evil.test', type: 'm.test', message_id: `m${count++}`, messages };
        return { edu_type: 'm.direct_to_device', content };
      };
      const sends = Array.from({ length: 6 }, () =>
        prepared(JSON.stringify({ edus: Array.from({ length: 20 }, edu) })),
      );
      const allowed = { longest: 50, total: 200 };
      const cost = await costAfterRetries(allowed, async () => assert.equal(await sends.pop()?.(), 200));
      assert.ok(!exceeds(cost, allowed), `${cost.longest} ms at a time, ${cost.total} in all`);
    });

    it('answers 429 to repeated transactions of 1.5 MB that have an invalid signature, using less than 200 ms of CPU', async () => {
      const content = useless('edus', `{"edu_type":"x","content":${emptyObjects(5_000)}}`, 100);
      const send = prepared(content, `${content} `);
      const costs = [];
      for (let count = 0; count < 6; count++) costs.push(await threadCost(async () => void (await send())));
      assert.ok(costs.at(-1)!.total < 200, `${costs.map(({ total }) => Math.round(total)).join(', ')} ms`);
      assert.equal(await send(), 429);
    });
  });
});
