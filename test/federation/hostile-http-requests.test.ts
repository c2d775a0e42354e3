import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, describe, it } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { eventually } from '../clients/eventually.ts';
import { forSelectedDatabases } from '../support/databases/databases.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import type { TestClient } from '../support/users/test-client.ts';

const path = '/_matrix/federation/v1/send/x';

forSelectedDatabases(import.meta.url, ({ kind }) => {
  describe('HTTP requests of remote servers', () => {
    let several: SeveralServers;
    let a: FederatedServer;
    let evil: ScriptedServer;
    let anna: TestClient;
    const sockets: TLSSocket[] = [];
    before(async () => {
      several = new SeveralServers(kind);
      a = await several.homeserver('a.test');
      evil = await several.scripted('evil.test');
      anna = await a.registerClient('anna');
    });
    after(async () => {
      for (const socket of sockets) socket.destroy();
      await several.stop();
    });

    async function open(): Promise<TLSSocket> {
      const port = several.resolver.srv.get('_matrix-fed._tcp.a.test')![0]!.port;
      const socket = connect({ host: '127.0.0.1', port, servername: 'a.test', rejectUnauthorized: false });
      socket.on('error', () => undefined);
      sockets.push(socket);
      await once(socket, 'secureConnect');
      return socket;
    }
    /**
     * Writes `start`, and then `flooding` again and again until a response or the end of the connection.
     * @returns the start of the response
     */
    async function send(start: string | Buffer, flooding?: Buffer): Promise<string> {
      const socket = await open();
      let answer = '';
      socket.on('data', (data) => {
        answer += data.toString('latin1');
      });
      socket.write(start);
      const flood = () => {
        if (flooding && !socket.destroyed && answer === '') socket.write(flooding, () => setImmediate(flood));
      };
      flood();
      const isOver = () => answer.includes('\r\n\r\n') || socket.destroyed || socket.readableEnded;
      await eventually('a response or the end of the connection', isOver);
      socket.destroy();
      return answer.slice(0, 12);
    }
    const head = (headers: Record<string, string>) =>
      [
        `PUT ${path} HTTP/1.1`,
        'host: a.test',
        'authorization: X-Matrix origin="evil.test",destination="a.test",key="ed25519:scripted",sig="AAAA"',
        'content-type: application/json',
        ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
        '\r\n',
      ].join('\r\n');
    /** Checks that the server still answers other requests. */
    async function assertStillServes(): Promise<void> {
      const roomId = await anna.createRoom({ preset: 'public_chat', room_version: '11' });
      const visitor = await ScriptedMember.join(evil, 'a.test', roomId, '@guest:evil.test');
      await visitor.say('still served');
    }

    it('serves other requests while 100 requests never end', async () => {
      for (let n = 0; n < 100; n++) {
        const socket = await open();
        socket.write(n % 2 === 0 ? 'PUT /_matrix/federation' : head({ 'content-length': '1000' }));
        if (n % 2 === 1) socket.write('{"pdus":[');
      }
      await assertStillServes();
    });

    it('cuts off requests with endless bodies or headers', async () => {
      const chunk = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`);
      const chunked = await send(head({ 'transfer-encoding': 'chunked' }), chunk);
      assert.match(chunked, /^(HTTP\/1.1 4|$)/);
      const long = await send(head({ 'content-length': '999999999999' }), Buffer.alloc(65_536, 0x20));
      assert.match(long, /^(HTTP\/1.1 4|$)/);
      const headers = await send(
        'GET / HTTP/1.1\r\nhost: a.test\r\n',
        Buffer.from(`x-a: ${'b'.repeat(1_000)}\r\n`),
      );
      assert.match(headers, /^(HTTP\/1.1 4|$)/);
      await assertStillServes();
    });

    it('refuses compressed and malformed requests', async () => {
      const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, ' '));
      const packed = head({ 'content-encoding': 'gzip', 'content-length': String(bomb.length) });
      assert.match(await send(Buffer.concat([Buffer.from(packed), bomb])), /^HTTP\/1.1 4/);
      for (const text of [
        '\0\0\0\0\r\n\r\n',
        'GET\r\n\r\n',
        `${head({ 'content-length': '5', 'transfer-encoding': 'chunked' })}0\r\n\r\n`,
        `${head({ 'content-length': '-5' })}`,
        `GET http://evil.test/ HTTP/1.1\r\nhost: evil.test\r\n\r\n`,
        `GET /_matrix/federation/v1/${'x'.repeat(20_000)} HTTP/1.1\r\nhost: a.test\r\n\r\n`,
        `GET /_matrix/federation/v1/event/%ff%00 HTTP/1.1\r\nhost: a.test\r\n\r\n`,
      ]) {
        assert.match(await send(text), /^HTTP\/1.1 4/, text.slice(0, 100));
      }
      await assertStillServes();
    });
  });
});
