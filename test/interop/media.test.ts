import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { imageMetadata, noiseImage } from '../support/inputs/images.ts';
import { byDirection, InteropSuite, type ScenarioOptions } from './interop-suite.ts';
import type { InteropUser } from './interop-user.ts';

const name = 'Kätzchen.png';
const type = 'image/png';
const options: ScenarioOptions = { ways: byDirection, endsWithoutSharedRoom: true };

/** Returns the authenticated media path of an mxc URI. */
const download = (uri: string) => `/_matrix/client/v1/media/download/${uri.slice('mxc://'.length)}`;

async function upload(owner: InteropUser, body: Buffer<ArrayBuffer>): Promise<string> {
  const path = `/_matrix/media/v3/upload?filename=${encodeURIComponent(name)}`;
  const answer = await owner.fetch('POST', path, { body, headers: { 'content-type': type } });
  assert.equal(answer.status, 200);
  return ((await answer.json()) as { content_uri: string }).content_uri;
}

async function assertSame(answer: Response, bytes: Buffer, fileName: string): Promise<void> {
  assert.equal(answer.status, 200);
  assert.equal(answer.headers.get('content-type'), type);
  const disposition = decodeURIComponent(answer.headers.get('content-disposition') ?? '');
  assert.ok(disposition.includes(fileName), disposition);
  const digest = (content: Buffer) => createHash('sha256').update(content).digest('hex');
  assert.equal(digest(Buffer.from(await answer.arrayBuffer())), digest(bytes));
}

InteropSuite.onSharedServers('media', (suite) => {
  suite.bothWays(
    'downloads media that was uploaded at the other server',
    async ({ host: owner, guest: reader }) => {
      const bytes = randomBytes(1_500_000);
      const uri = await upload(owner, bytes);
      assert.ok(uri.startsWith(`mxc://${owner.server.name}/`));
      // The first download fetches the media, the second one serves the stored copy.
      for (const _ of ['fetched', 'stored'])
        await assertSame(await reader.fetch('GET', download(uri)), bytes, name);
      await assertSame(await reader.fetch('GET', `${download(uri)}/other.png`), bytes, 'other.png');
    },
    options,
  );

  suite.bothWays(
    'makes thumbnails of media of the other server',
    async ({ host: owner, guest: reader }) => {
      const uri = await upload(owner, await noiseImage(1_000, 500));
      const thumbnail = (mxcUri: string, query: string) =>
        reader.fetch('GET', `${download(mxcUri).replace('download', 'thumbnail')}?${query}`);
      for (const [query, size] of [
        ['width=32&height=32&method=crop', '32x32'],
        ['width=320&height=240&method=scale', '320x160'],
        ['width=320&height=240&method=scale&animated=true', '320x160'],
        ['width=700&height=500', '800x400'],
      ] as const) {
        const answer = await thumbnail(uri, query);
        assert.equal(answer.status, 200, query);
        assert.match(answer.headers.get('content-disposition') ?? '', /^inline/);
        const { format, width, height } = await imageMetadata(Buffer.from(await answer.arrayBuffer()));
        assert.deepEqual(
          [answer.headers.get('content-type'), `${width}x${height}`],
          [`image/${format}`, size],
        );
      }
      const notAnImage = await thumbnail(await upload(owner, randomBytes(100)), 'width=32&height=32');
      assert.equal(notAnImage.status, 400);
      assert.equal(((await notAnImage.json()) as { errcode: string }).errcode, 'M_UNKNOWN');
      const unknown = await thumbnail(`mxc://${owner.server.name}/nothing`, 'width=32&height=32');
      assert.equal(unknown.status, 404);
    },
    options,
  );

  suite.bothWays(
    'serves concurrent downloads of the same media',
    async ({ host: owner, guests: { first, second } }) => {
      const bytes = randomBytes(300_000);
      const path = download(await upload(owner, bytes));
      const answers = [first, second, first, second].map((reader) => reader.fetch('GET', path));
      for (const answer of await Promise.all(answers)) await assertSame(answer, bytes, name);
    },
    options,
  );

  suite.bothWays(
    'downloads an empty file of Hearth, and answers 502 for an empty file of the reference server',
    async ({ host: owner, guest: reader }) => {
      const bytes = Buffer.alloc(0);
      const answer = await reader.fetch('GET', download(await upload(owner, bytes)));
      if (owner === suite.onHearth.first) return assertSame(answer, bytes, name);
      // The reference server leaves out the multipart body part when the file is empty.
      assert.equal(answer.status, 502);
      assert.match(((await answer.json()) as { error: string }).error, /A part is missing after a boundary/i);
    },
    options,
  );

  suite.bothWays(
    'answers 401 to downloads without an access token, and 404 on the unauthenticated endpoint',
    async ({ host: owner, guest: reader }) => {
      const uri = await upload(owner, randomBytes(100));
      const unauthenticated = await fetch(`${reader.server.url}${download(uri)}`);
      assert.equal(unauthenticated.status, 401);
      // The unauthenticated endpoint does not serve this media on either server.
      for (const { server } of [owner, reader]) {
        const answerOfOldEndpoint = await fetch(
          `${server.url}/_matrix/media/v3/download/${uri.slice('mxc://'.length)}`,
        );
        assert.equal(answerOfOldEndpoint.status, 404);
      }
    },
    options,
  );

  suite.bothWays(
    'answers with 404 for unknown media',
    async ({ host: owner, guest: reader }) => {
      const { status, body } = await reader.call('GET', download(`mxc://${owner.server.name}/nothing`));
      assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
    },
    options,
  );

  suite.bothWays(
    'waits for media that is uploaded after its URI was created',
    async ({ host: owner, guest: reader }) => {
      const { content_uri } = await owner.do('POST', '/_matrix/media/v1/create');
      const uri = content_uri as string;
      if (reader === suite.onHearth.first) {
        const beforeUpload = await reader.call('GET', `${download(uri)}?timeout_ms=1`);
        assert.deepEqual([beforeUpload.status, beforeUpload.body['errcode']], [504, 'M_NOT_YET_UPLOADED']);
        // The reference server takes this error for a failure of the server, and backs off from it.
      }
      const waiting = reader.fetch('GET', `${download(uri)}?timeout_ms=60000`);
      const body = randomBytes(10_000);
      const path = `/_matrix/media/v3/upload/${uri.slice('mxc://'.length)}?filename=${encodeURIComponent(name)}`;
      const answer = await owner.fetch('PUT', path, { body, headers: { 'content-type': type } });
      assert.equal(answer.status, 200);
      await assertSame(await waiting, body, name);
    },
    options,
  );
});
