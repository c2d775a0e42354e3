import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { imageMetadata, noiseImage } from '../support/inputs/images.ts';
import { fromTo, Meeting } from './meeting.ts';
import type { Someone } from './someone.ts';

const [name, type] = ['Kätzchen.png', 'image/png'];
const options = { ways: fromTo, endsApart: true };

/** The path of authenticated media behind its URI. */
const download = (uri: string) => `/_matrix/client/v1/media/download/${uri.slice('mxc://'.length)}`;

async function upload(owner: Someone, body: Buffer<ArrayBuffer>): Promise<string> {
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
  const digest = (of: Buffer) => createHash('sha256').update(of).digest('hex');
  assert.equal(digest(Buffer.from(await answer.arrayBuffer())), digest(bytes));
}

Meeting.of('media', (meeting) => {
  meeting.bothWays(
    'what is uploaded at one is downloaded through the other',
    async ({ host: owner, guest: reader }) => {
      const bytes = randomBytes(1_500_000);
      const uri = await upload(owner, bytes);
      assert.ok(uri.startsWith(`mxc://${owner.server.name}/`));
      // The first time it is fetched, the second time it is there.
      for (const _ of ['fetched', 'kept'])
        await assertSame(await reader.fetch('GET', download(uri)), bytes, name);
      await assertSame(await reader.fetch('GET', `${download(uri)}/other.png`), bytes, 'other.png');
    },
    options,
  );

  meeting.bothWays(
    'thumbnails are made of what the other has',
    async ({ host: owner, guest: reader }) => {
      const uri = await upload(owner, await noiseImage(1_000, 500));
      const thumbnail = (of: string, query: string) =>
        reader.fetch('GET', `${download(of).replace('download', 'thumbnail')}?${query}`);
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
      const noPicture = await thumbnail(await upload(owner, randomBytes(100)), 'width=32&height=32');
      assert.equal(noPicture.status, 400);
      assert.equal(((await noPicture.json()) as { errcode: string }).errcode, 'M_UNKNOWN');
      const nothing = await thumbnail(`mxc://${owner.server.name}/nothing`, 'width=32&height=32');
      assert.equal(nothing.status, 404);
    },
    options,
  );

  meeting.bothWays(
    'several read the same at once',
    async ({ host: owner, guests: { one, other } }) => {
      const bytes = randomBytes(300_000);
      const path = download(await upload(owner, bytes));
      const answers = [one, other, one, other].map((reader) => reader.fetch('GET', path));
      for (const answer of await Promise.all(answers)) await assertSame(answer, bytes, name);
    },
    options,
  );

  meeting.bothWays(
    'an empty file is a file',
    async ({ host: owner, guest: reader }) => {
      const bytes = Buffer.alloc(0);
      const answer = await reader.fetch('GET', download(await upload(owner, bytes)));
      if (owner === meeting.here.one) return assertSame(answer, bytes, name);
      // The other server leaves out the part with the file when that is empty.
      assert.equal(answer.status, 502);
      assert.match(((await answer.json()) as { error: string }).error, /a part less than there should be/);
    },
    options,
  );

  meeting.bothWays(
    'media is for who is signed in',
    async ({ host: owner, guest: reader }) => {
      const uri = await upload(owner, randomBytes(100));
      const nobody = await fetch(`${reader.server.url}${download(uri)}`);
      assert.equal(nobody.status, 401);
      // The way that was there before is closed for it, at both.
      for (const { server } of [owner, reader]) {
        const old = await fetch(`${server.url}/_matrix/media/v3/download/${uri.slice('mxc://'.length)}`);
        assert.equal(old.status, 404);
      }
    },
    options,
  );

  meeting.bothWays(
    'what is not there is not found',
    async ({ host: owner, guest: reader }) => {
      const { status, body } = await reader.call('GET', download(`mxc://${owner.server.name}/nothing`));
      assert.deepEqual([status, body['errcode']], [404, 'M_NOT_FOUND']);
    },
    options,
  );

  meeting.bothWays(
    'media is waited for whose address is known before it is uploaded',
    async ({ host: owner, guest: reader }) => {
      const { content_uri } = await owner.do('POST', '/_matrix/media/v1/create');
      const uri = content_uri as string;
      if (reader === meeting.here.one) {
        const early = await reader.call('GET', `${download(uri)}?timeout_ms=1`);
        assert.deepEqual([early.status, early.body['errcode']], [504, 'M_NOT_YET_UPLOADED']);
        // The other server takes that answer for a sign that a server is out of order, and leaves it alone for a while.
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
