import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { unhurriedClock } from '../../../test/support/clocks/unhurried-clock.ts';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import {
  imageMetadata,
  noiseImage,
  pngWithClaimedSize,
  redEdges,
  testAnimation,
  testImage,
} from '../../../test/support/inputs/images.ts';
import {
  type ConfigurationOverrides,
  startTestServer,
  type TestServer,
  type TestUser,
} from '../../../test/support/servers/server.ts';

type MediaOptions = NonNullable<ConfigurationOverrides['media']>;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`thumbnails on ${database}`, () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-thumbnails-'));
    const running: TestServer[] = [];
    let server: TestServer;
    let anna: TestUser;
    let store: string;
    const start = async (media: MediaOptions = {}) => {
      store = mkdtempSync(join(folder, 'store-'));
      server = await startTestServer({
        database,
        // The process that makes thumbnails has a low priority, and is killed after 20 seconds.
        clock: unhurriedClock,
        config: { media: { media_store_path: store, ...media } },
      });
      running.push(server);
      anna = await server.register('anna');
    };
    const stopAll = async () => {
      for (const each of running.splice(0)) await each.stop();
    };
    after(() => rmSync(folder, { recursive: true, force: true }));

    const upload = async (body: Uint8Array, type = 'application/octet-stream') => {
      const headers = { 'content-type': type };
      const answer = await server.api('POST', '/_matrix/media/v3/upload', {
        token: anna.token,
        body,
        headers,
      });
      assert.equal(answer.status, 200, JSON.stringify(answer.body));
      return (answer.body['content_uri'] as string).slice('mxc://'.length);
    };
    const get = async (path: string, token?: string) => {
      const headers: Record<string, string> = token ? { authorization: `Bearer ${token}` } : {};
      const response = await fetch(server.baseUrl + path, { headers });
      return { response, bytes: Buffer.from(await response.arrayBuffer()) };
    };
    /** @param query for instance `width=32&height=32` */
    const fetchThumbnail = (media: string, query: string) =>
      get(`/_matrix/client/v1/media/thumbnail/${media}?${query}`, anna.token);
    const statusAndErrcode = ({ response, bytes }: Awaited<ReturnType<typeof get>>) =>
      `${response.status} ${(JSON.parse(bytes.toString()) as { errcode: string }).errcode}`;
    /** Returns the error response, checked against the specification. */
    const refusal = async (media: string, query: string) => {
      const path = `/_matrix/client/v1/media/thumbnail/${media}?${query}`;
      const { status, body } = await server.api('GET', path, { token: anna.token });
      return `${status} ${body['errcode']}`;
    };
    const sizeOf = async (media: string, width: number, height: number, method = 'scale', more = '') => {
      const { response, bytes } = await fetchThumbnail(
        media,
        `width=${width}&height=${height}&method=${method}${more}`,
      );
      assert.equal(response.status, 200, bytes.toString().slice(0, 200));
      const seen = await imageMetadata(bytes);
      assert.equal(response.headers.get('content-type'), `image/${seen.format}`);
      return `${seen.width}x${seen.height}`;
    };
    const thumbnailsIn = (area: string) =>
      filesBelow(join(store, 'thumbnails', area))
        .map((path) => basename(path))
        .filter((name) => name !== 'picture.json')
        .sort();

    describe('GET /thumbnail', () => {
      before(() => start());
      after(stopAll);

      it('serves thumbnails with the headers of media, to logged-in users', async () => {
        const media = await upload(await testImage(1_000, 500, 'jpeg'));
        const { response, bytes } = await fetchThumbnail(media, 'width=320&height=240');
        assert.equal(response.status, 200);
        const header = (name: string) => response.headers.get(name);
        assert.equal(header('content-type'), 'image/jpeg');
        assert.equal(header('content-length'), String(bytes.length));
        assert.equal(header('content-disposition'), 'inline; filename=thumbnail.jpeg');
        assert.match(header('content-security-policy')!, /^sandbox; default-src 'none';/);
        assert.equal(header('cross-origin-resource-policy'), 'cross-origin');
        assert.equal(header('access-control-allow-origin'), '*');
        assert.equal(header('x-content-type-options'), 'nosniff');
        assert.match(header('cache-control')!, /^private/);
        const unauthenticated = await get(`/_matrix/client/v1/media/thumbnail/${media}?width=32&height=32`);
        assert.equal(statusAndErrcode(unauthenticated), '401 M_MISSING_TOKEN');
      });

      it('makes thumbnails of all supported formats, recognized by the bytes', async () => {
        const formats = { jpeg: 'jpeg', png: 'png', webp: 'jpeg', gif: 'png', avif: 'jpeg' } as const;
        for (const [format, expected] of Object.entries(formats)) {
          const media = await upload(await testImage(200, 100, format as 'png'), 'text/html');
          const { response, bytes } = await fetchThumbnail(media, 'width=32&height=32&method=crop');
          assert.equal(response.status, 200, format);
          assert.equal(response.headers.get('content-type'), `image/${expected}`);
          const { format: seen, width, height, isBare } = await imageMetadata(bytes);
          assert.deepEqual([seen, width, height, isBare], [expected, 32, 32, true]);
        }
      });

      it('applies the rotation of the image, and drops its metadata', async () => {
        // Rotated by a quarter: the left side of the file is on top.
        const media = await upload(await testImage(600, 400, 'jpeg', 6));
        for (const query of ['width=100&height=100', 'width=32&height=32&method=crop']) {
          const { bytes } = await fetchThumbnail(media, query);
          assert.deepEqual((({ top, bottom }) => [top, bottom])(await redEdges(bytes)), [true, false]);
          const { orientation, isBare } = await imageMetadata(bytes);
          assert.deepEqual([orientation, isBare], [undefined, true]);
        }
        assert.equal(await sizeOf(media, 320, 240), '160x240');
        // The rotation also applies when the size does not change.
        assert.equal(await sizeOf(media, 5_000, 5_000), '400x600');
      });

      it('serves thumbnails that are never smaller than requested, unless the image is smaller', async () => {
        const media = await upload(await testImage(1_650, 1_100));
        assert.equal(await sizeOf(media, 10, 10, 'crop'), '32x32');
        assert.equal(await sizeOf(media, 33, 10, 'crop'), '96x96');
        assert.equal(await sizeOf(media, 300, 200), '320x213');
        assert.equal(await sizeOf(media, 330, 10), '320x213', 'it would be 15 high');
        assert.equal(await sizeOf(media, 640, 480), '640x427');
        assert.equal(await sizeOf(media, 700, 600), '800x533');
        // Beyond the list, its largest sizes are doubled.
        assert.equal(await sizeOf(media, 97, 97, 'crop'), '192x192');
        assert.equal(await sizeOf(media, 801, 601), '1600x1067');
        assert.equal(await sizeOf(media, 9_999, 9_999), '1650x1100');
      });

      it('serves the original if the image is small enough, unless thumbnails do not have its format', async () => {
        const bytes = await testImage(60, 40, 'webp');
        const media = await upload(bytes);
        const answer = await fetchThumbnail(media, 'width=64&height=64&method=crop');
        assert.deepEqual(answer.bytes, bytes);
        assert.equal(answer.response.headers.get('content-type'), 'image/webp');
        assert.match(answer.response.headers.get('content-disposition')!, /^inline/);
        const dot = await upload(await testImage(1, 1));
        assert.equal(await sizeOf(dot, 1, 1, 'crop'), '1x1');
        const line = await upload(await testImage(2_000, 1));
        assert.equal(await sizeOf(line, 32, 32), '320x1');
        // An image in a format that thumbnails do not have is converted.
        assert.equal(await sizeOf(await upload(await testImage(60, 40, 'avif')), 100, 100), '60x40');
      });

      it('serves animated thumbnails only on request', async () => {
        for (const format of ['gif', 'webp'] as const) {
          const bytes = await testAnimation(400, 200, format);
          const media = await upload(bytes);
          for (const [query, frames] of [
            ['width=50&height=50', 1],
            ['width=50&height=50&animated=false', 1],
            ['width=900&height=900', 1],
            ['width=50&height=50&animated=true', 3],
            ['width=32&height=32&method=crop&animated=true', 3],
          ] as const) {
            const answer = await fetchThumbnail(media, query);
            const seen = await imageMetadata(answer.bytes);
            assert.equal(seen.frames, frames, `${format} ${query}`);
            assert.equal(seen.format, frames === 1 ? (format === 'gif' ? 'png' : 'jpeg') : 'webp');
            assert.equal(answer.response.headers.get('content-type'), `image/${seen.format}`);
          }
          const small = await fetchThumbnail(media, 'width=900&height=900&animated=true');
          assert.deepEqual(small.bytes, bytes);
        }
        const still = await upload(await testImage(200, 100, 'jpeg'));
        assert.equal(
          (await imageMetadata((await fetchThumbnail(still, 'width=20&height=20&animated=true')).bytes))
            .frames,
          1,
        );
        // The frames of APNG are not read, so only the original is animated.
        const apng = pngWithClaimedSize(20, 20, 20, 'acTL');
        const moving = await upload(apng);
        assert.deepEqual((await fetchThumbnail(moving, 'width=90&height=90&animated=true')).bytes, apng);
        const notAnimated = await fetchThumbnail(moving, 'width=90&height=90');
        assert.equal(notAnimated.response.status, 200);
        assert.ok(!notAnimated.bytes.includes('acTL'));
      });

      it('rejects missing and invalid sizes, unknown methods, and invalid values of animated', async () => {
        const media = await upload(await testImage(10, 10));
        for (const [query, code] of [
          ['', 'M_MISSING_PARAM'],
          ['width=10', 'M_MISSING_PARAM'],
          ['height=10', 'M_MISSING_PARAM'],
          ['width=x&height=10', 'M_INVALID_PARAM'],
          ['width=1.5&height=10', 'M_INVALID_PARAM'],
          ['width=-1&height=10', 'M_INVALID_PARAM'],
          ['width=0&height=10', 'M_INVALID_PARAM'],
          ['width=10&height=10&method=stretch', 'M_INVALID_PARAM'],
          ['width=10&height=10&animated=yes', 'M_INVALID_PARAM'],
        ]) {
          assert.equal(await refusal(media, query!), `400 ${code}`, query);
        }
        assert.equal(await sizeOf(media, 9_007_199_254_740_991, 9_007_199_254_740_991), '10x10');
      });

      it('answers 404 M_NOT_FOUND for unknown media, and 504 M_NOT_YET_UPLOADED for pending uploads', async () => {
        assert.equal(await refusal('test/unknown', 'width=1&height=1'), '404 M_NOT_FOUND');
        assert.equal(await refusal('test/..%2F..%2Fx', 'width=1&height=1'), '404 M_NOT_FOUND');
        const { body } = await server.api('POST', '/_matrix/media/v1/create', { token: anna.token });
        const media = (body['content_uri'] as string).slice('mxc://'.length);
        assert.equal(await refusal(media, 'width=1&height=1&timeout_ms=0'), '504 M_NOT_YET_UPLOADED');
        const waiting = fetchThumbnail(media, 'width=32&height=32&method=crop');
        const put = {
          token: anna.token,
          body: await testImage(100, 100),
          headers: { 'content-type': 'x/y' },
        };
        assert.equal((await server.api('PUT', `/_matrix/media/v3/upload/${media}`, put)).status, 200);
        assert.equal((await waiting).response.status, 200);
      });

      it('answers 400 M_UNKNOWN for content that is not an image, and for broken images', async () => {
        const whole = await noiseImage(300, 300);
        const jpeg = await testImage(300, 300, 'jpeg');
        const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>';
        const cases: Record<string, Uint8Array> = {
          text: Buffer.from('hello'),
          nothing: Buffer.alloc(0),
          'a drawing': Buffer.from(svg),
          'a document': Buffer.from('%PDF-1.7\n'),
          'a format that is not read': await testImage(300, 300, 'tiff'),
          'a beginning': whole.subarray(0, 8),
          'a header': whole.subarray(0, 33),
          'half an image': whole.subarray(0, whole.length / 2),
          'half a photograph': jpeg.subarray(0, jpeg.length / 2),
          'an image in name only': Buffer.concat([jpeg.subarray(0, 3), Buffer.from(svg)]),
          'more pixels than there can be': pngWithClaimedSize(2 ** 31 - 1, 2 ** 31 - 1),
          'pixels that are missing': pngWithClaimedSize(1_000, 1_000),
        };
        for (const [what, bytes] of Object.entries(cases)) {
          const media = await upload(bytes, 'image/png');
          for (let times = 0; times < 2; times++) {
            assert.equal(await refusal(media, 'width=32&height=32&method=crop'), '400 M_UNKNOWN', what);
          }
        }
        // A file that is valid in several formats is treated as an image.
        const jpegWithScript = Buffer.concat([jpeg, Buffer.from('<script>alert(1)</script>')]);
        const { response, bytes } = await fetchThumbnail(
          await upload(jpegWithScript, 'text/html'),
          'width=32&height=32',
        );
        assert.equal(response.headers.get('content-type'), 'image/jpeg');
        assert.ok(!bytes.includes('script'));
      });

      it('answers 404 M_NOT_FOUND at the unauthenticated endpoints for media that was stored while authentication was required', async () => {
        const media = await upload(await testImage(100, 100));
        const old = await get(`/_matrix/media/v3/thumbnail/${media}?width=32&height=32`);
        assert.equal(statusAndErrcode(old), '404 M_NOT_FOUND');
      });
    });

    describe('options for thumbnails', () => {
      afterEach(stopAll);

      it('makes thumbnails after the upload, and again when they are missing [option: media_store_path]', async () => {
        await start();
        const media = await upload(await noiseImage(1_000, 500));
        const thumbnailNames = [
          '32x32-crop.png',
          '96x96-crop.png',
          '320x160-scale.png',
          '640x320-scale.png',
          '800x400-scale.png',
        ];
        await eventually('the thumbnails', () => thumbnailsIn('local').length === thumbnailNames.length);
        assert.deepEqual(thumbnailsIn('local'), thumbnailNames.sort());
        const first = (await fetchThumbnail(media, 'width=320&height=240')).bytes;
        rmSync(join(store, 'thumbnails'), { recursive: true });
        assert.deepEqual((await fetchThumbnail(media, 'width=320&height=240')).bytes, first);
        assert.deepEqual(thumbnailsIn('local'), ['320x160-scale.png']);
        await server.restart();
        assert.deepEqual((await fetchThumbnail(media, 'width=320&height=240')).bytes, first);
        const files = readdirSync(join(store, 'incoming'));
        assert.deepEqual(files, []);
        rmSync(join(store, 'local'), { recursive: true });
        assert.equal(await refusal(media, 'width=320&height=240'), '404 M_NOT_FOUND');
      });

      it('makes thumbnails of the requested size [option: dynamic_thumbnails]', async () => {
        await start({ dynamic_thumbnails: true });
        const media = await upload(await testImage(1_000, 500));
        assert.equal(await sizeOf(media, 123, 45, 'crop'), '123x45');
        assert.equal(await sizeOf(media, 123, 123), '123x62');
        assert.equal(await sizeOf(media, 2_000, 250, 'crop'), '1000x125');
        // The number of stored thumbnails of a file is limited.
        for (let width = 1; width <= 66; width++) await sizeOf(media, width, 10, 'crop');
        assert.equal(thumbnailsIn('local').length, 2 * 5 + 64);
        assert.equal(await sizeOf(media, 1, 10, 'crop'), '1x10');
      });

      it('makes the thumbnails that thumbnail_sizes lists [option: thumbnail_sizes[].width] [option: thumbnail_sizes[].height] [option: thumbnail_sizes[].method]', async () => {
        await start({
          thumbnail_sizes: [
            { width: 50, height: 20, method: 'scale' },
            { width: 40, height: 10, method: 'crop' },
            { width: 40, height: 40, method: 'crop' },
          ],
        });
        const media = await upload(await testImage(1_000, 500));
        const made = ['40x10-crop.png', '40x20-scale.png', '40x40-crop.png'];
        await eventually('the thumbnails', () => thumbnailsIn('local').length === made.length);
        assert.deepEqual(thumbnailsIn('local'), made);
        assert.equal(await sizeOf(media, 10, 10), '40x20');
        assert.equal(await sizeOf(media, 16, 4, 'crop'), '40x10');
        assert.equal(await sizeOf(media, 10, 10, 'crop'), '40x40');
        assert.deepEqual(thumbnailsIn('local'), made);
      });

      it('serves the original image when thumbnail_sizes is empty', async () => {
        await start({ thumbnail_sizes: [] });
        const bytes = await testImage(100, 50);
        const media = await upload(bytes);
        for (const method of ['crop', 'scale']) {
          assert.deepEqual((await fetchThumbnail(media, `width=9&height=9&method=${method}`)).bytes, bytes);
        }
      });

      it('rejects images that are too large [option: max_image_pixels]', async () => {
        await start({ max_image_pixels: 20_000 });
        const query = 'width=32&height=32&method=crop';
        const fits = await upload(await testImage(200, 100));
        assert.equal((await fetchThumbnail(fits, query)).response.status, 200);
        for (const bytes of [
          await testImage(201, 100),
          pngWithClaimedSize(20_000, 20_000),
          pngWithClaimedSize(60_000, 60_000),
          pngWithClaimedSize(8_000, 8_000, 8_000),
        ]) {
          assert.equal(await refusal(await upload(bytes), query), '413 M_TOO_LARGE');
        }
        // All frames together are too large: the thumbnail is not animated.
        const moving = await upload(await testAnimation(100, 100, 'gif'));
        const { bytes } = await fetchThumbnail(moving, `${query}&animated=true`);
        assert.equal((await imageMetadata(bytes)).frames, 1);
      });

      it('serves at the unauthenticated endpoints thumbnails of media that was stored while no authentication was required [option: enable_authenticated_media]', async () => {
        await start({ enable_authenticated_media: false });
        const media = await upload(await testImage(100, 100));
        for (const version of ['v3', 'r0', 'v1']) {
          const path = `/_matrix/media/${version}/thumbnail/${media}`;
          const query = 'width=32&height=32&method=crop&allow_remote=false&allow_redirect=true';
          const { response, bytes } = await get(`${path}?${query}`);
          assert.equal(response.status, 200);
          assert.match(response.headers.get('cache-control')!, /^public/);
          assert.equal((await imageMetadata(bytes)).width, 32);
        }
      });

      it('serves no thumbnails when enable_media_repo is false [option: enable_media_repo]', async () => {
        await start({ enable_media_repo: false });
        assert.equal(await refusal('test/x', 'width=1&height=1'), '404 M_UNRECOGNIZED');
      });
    });
  });
}
