import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RoomHead, RoomReader } from '../../room-engine/index.ts';
import { RoomMedia } from './room-media.ts';

describe('RoomMedia', () => {
  it('returns the files of the newest events, up to a given number, and reads no older events', async () => {
    let reads = 0;
    const events = {
      async history(_roomNid: number, { depth }: { depth: number }, { limit }: { limit: number }) {
        reads++;
        const newest = Math.min(depth, 10_000);
        return Array.from({ length: limit }, (_, index) => ({
          stream: newest - index,
          event: { depth: newest - index, content: { url: `mxc://test/${newest - index}` } },
        }));
      },
    };
    const media = new RoomMedia({ events } as unknown as Pick<RoomReader, 'events'>, 2);
    const found = await media.of({ roomNid: 1 } as RoomHead);
    assert.deepEqual(
      found.map(({ mediaId }) => mediaId),
      ['10000', '9999'],
    );
    assert.equal(reads, 1);
  });

  it('returns the files of messages and the avatar of the room, and no avatars of members', async () => {
    const contents = [
      { membership: 'join', avatar_url: 'mxc://test/member' },
      { url: 'mxc://test/room' },
      { msgtype: 'm.image', url: 'mxc://test/image', info: { thumbnail_url: 'mxc://test/thumbnail' } },
    ];
    const history = async () =>
      contents.map((content, index) => ({ stream: index, event: { depth: index, content } }));
    const media = new RoomMedia({ events: { history } } as unknown as Pick<RoomReader, 'events'>);
    const found = await media.of({ roomNid: 1 } as RoomHead);
    assert.deepEqual(
      found.map(({ mediaId }) => mediaId),
      ['room', 'image', 'thumbnail'],
    );
  });
});
