import { randomInt } from 'node:crypto';
import sharp from 'sharp';
import { type Account, expectOk, syncPath } from './account.ts';
import { nextBatch } from './next-batch.ts';
import { inParallel } from './parallel.ts';

/** The operations of the load, each with its relative frequency. */
const work: readonly { readonly weight: number; run(load: MixedLoad, user: Account): Promise<unknown> }[] = [
  { weight: 60, run: (load, user) => user.send(load.someRoom(), shortText) },
  { weight: 4, run: (load, user) => user.send(load.someRoom(), longText) },
  {
    weight: 8,
    run: (load, user) => load.call(user, 'PUT', `/typing/${encodeURIComponent(user.userId)}`, typing),
  },
  { weight: 8, run: (load, user) => load.call(user, 'GET', '/messages?dir=b&limit=50') },
  { weight: 8, run: (load, user) => load.read(user) },
  { weight: 6, run: (load, user) => load.call(user, 'GET', '/members') },
  { weight: 4, run: (_load, user) => user.sync({ timeout: '0', set_presence: 'offline' }) },
  { weight: 2, run: (load, user) => load.uploadImage(user) },
];
/** Contains each operation as many times as its weight. */
const choices = work.flatMap((kind) => Array.from({ length: kind.weight }, () => kind));

const shortText = 'a message of ordinary length, as people write them. '.repeat(2);
const longText = 'a long message. '.repeat(1_500);
const typing = JSON.stringify({ typing: true, timeout: 20_000 });

/**
 * Simulates the requests to a busy server. The users send requests at the same time, each on a connection of its own.
 */
export class MixedLoad {
  /** Number of finished operations. */
  operations = 0;
  readonly #url: string;
  readonly #rooms: readonly string[];
  readonly #image: Promise<Uint8Array<ArrayBuffer>>;

  constructor(url: string, rooms: readonly string[]) {
    this.#url = url;
    this.#rooms = rooms;
    this.#image = sharp({ create: { width: 800, height: 600, channels: 3, background: 'teal' } })
      .png()
      .toBuffer()
      .then((bytes) => new Uint8Array(bytes));
  }

  /** Runs operations until `deadline` (of `performance.now()`), one at a time for each user. */
  async run(users: readonly Account[], deadline: number): Promise<void> {
    await inParallel(users.length, users.length, async (index) => {
      while (performance.now() < deadline) {
        await choices[randomInt(choices.length)]!.run(this, users[index]!);
        this.operations++;
      }
    });
  }

  /** Returns the id of a random room. */
  someRoom(): string {
    return this.#rooms[randomInt(this.#rooms.length)]!;
  }

  /** Sends a request about some room. @param endpoint the part of the path after the room id, with the query */
  async call(user: Account, method: string, endpoint: string, body?: string): Promise<Buffer> {
    const path = `/_matrix/client/v3/rooms/${encodeURIComponent(this.someRoom())}${endpoint}`;
    return expectOk(await user.connection.request(method, path, body), path);
  }

  /** Sends a receipt for the newest event of some room. */
  async read(user: Account): Promise<void> {
    const room = `/_matrix/client/v3/rooms/${encodeURIComponent(this.someRoom())}`;
    const page = expectOk(await user.connection.request('GET', `${room}/messages?dir=b&limit=1`), 'messages');
    const { chunk } = JSON.parse(page.toString()) as { chunk: { event_id: string }[] };
    const path = `${room}/receipt/m.read/${encodeURIComponent(chunk[0]!.event_id)}`;
    expectOk(await user.connection.request('POST', path, '{}'), path);
  }

  /** Uploads an image, and loads its thumbnail. */
  async uploadImage(user: Account): Promise<void> {
    const headers = { authorization: `Bearer ${user.token}`, 'content-type': 'image/png' };
    const body = await this.#image;
    const uploaded = await fetch(`${this.#url}/_matrix/media/v3/upload`, { method: 'POST', headers, body });
    const { content_uri } = (await uploaded.json()) as { content_uri: string };
    const path = `/_matrix/client/v1/media/thumbnail/${content_uri.slice('mxc://'.length)}?width=96&height=96`;
    const thumbnail = await fetch(this.#url + path, { headers });
    if (!thumbnail.ok) throw new Error(`thumbnail: ${thumbnail.status} ${await thumbnail.text()}`);
    await thumbnail.arrayBuffer();
  }
}

/** Syncs with one long poll after the other, until `isOpen` returns false. */
export async function poll(user: Account, isOpen: () => boolean): Promise<void> {
  let since = nextBatch(await user.sync({ timeout: '0', set_presence: 'offline' }));
  while (isOpen()) {
    const path = syncPath({ since: since ?? '', timeout: '30000', set_presence: 'offline' });
    since = nextBatch(expectOk(await user.connection.request('GET', path), 'sync'));
  }
}
