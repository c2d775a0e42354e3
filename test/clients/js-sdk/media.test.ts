import assert from 'node:assert/strict';
import { EventType, getHttpUriForMxc, MsgType, Preset } from 'matrix-js-sdk';
import { imageMetadata, noiseImage, testAnimation } from '../../support/inputs/images.ts';
import { after, before, test } from '../bounded-test.ts';
import { eventually } from '../eventually.ts';
import { type ServerUnderTest, serverUnderTest } from '../server-under-test.ts';
import { acceptInvite, waitForMembers } from './encrypted-room.ts';
import { EncryptedSession } from './encrypted-session.ts';

let server: ServerUnderTest;
const sessions: EncryptedSession[] = [];
before(async () => {
  server = await serverUnderTest();
});
after(async () => {
  for (const session of sessions) session.stop();
  await server?.stop();
});

async function newSession(name: string): Promise<EncryptedSession> {
  const session = await EncryptedSession.withCrossSigning(server.url, name);
  sessions.push(session);
  return session;
}

test('delivers an image unchanged, with its name', async () => {
  const [alice, bob] = await Promise.all([newSession('alice'), newSession('bob')]);
  const { room_id: room } = await alice.client.createRoom({
    preset: Preset.PrivateChat,
    invite: [bob.userId],
  });
  await acceptInvite(bob, room);
  const bytes = new Uint8Array(Array.from({ length: 100_000 }, (_, index) => index % 253));
  const image = new Blob([bytes], { type: 'image/png' });
  const progress: number[] = [];
  const { content_uri: url } = await alice.client.uploadContent(image, {
    name: 'Kätzchen.png',
    progressHandler: ({ loaded }) => progress.push(loaded),
  });
  await alice.client.sendMessage(room, { msgtype: MsgType.Image, body: 'Kätzchen.png', url });
  const content = await eventually('the image to arrive', () =>
    bob.client
      .getRoom(room)
      ?.getLiveTimeline()
      .getEvents()
      .map((event) => event.getContent())
      .find(({ msgtype }) => msgtype === MsgType.Image),
  );
  const link = bob.client.mxcUrlToHttp(content['url'], undefined, undefined, undefined, false, true, true);
  const response = await fetch(link!, {
    headers: { authorization: `Bearer ${bob.client.getAccessToken()}` },
  });
  assert.equal(response.headers.get('content-type'), 'image/png');
  assert.match(response.headers.get('content-disposition')!, /K%C3%A4tzchen\.png/);
  assert.deepEqual(new Uint8Array(await response.arrayBuffer()), bytes);
  const config = await alice.client.getMediaConfig(true);
  assert.equal(config['m.upload.size'], 50 * 1024 * 1024);
});

test('returns thumbnails that are at least as large as requested if the image is that large, and animated thumbnails only on request', async () => {
  const alice = await newSession('alice');
  const upload = async (bytes: Uint8Array<ArrayBuffer>, type: string) =>
    (await alice.client.uploadContent(new Blob([bytes], { type }))).content_uri;
  const thumbnailOf = async (
    uri: string,
    size: readonly [number, number],
    method: string,
    animated?: boolean,
  ) => {
    const link = getHttpUriForMxc(server.url, uri, ...size, method, false, true, true, animated);
    const response = await fetch(link, {
      headers: { authorization: `Bearer ${alice.client.getAccessToken()}` },
    });
    assert.equal(response.status, 200, link);
    assert.match(response.headers.get('content-disposition')!, /^inline; filename=thumbnail\./);
    const { format, width, height, frames } = await imageMetadata(
      new Uint8Array(await response.arrayBuffer()),
    );
    assert.equal(response.headers.get('content-type'), `image/${format}`);
    return { size: [width, height], frames };
  };
  const photograph = await upload(await noiseImage(1_200, 900), 'image/png');
  assert.deepEqual(await thumbnailOf(photograph, [800, 600], 'scale'), { size: [800, 600], frames: 1 });
  assert.deepEqual(await thumbnailOf(photograph, [1_600, 1_200], 'scale'), { size: [1_200, 900], frames: 1 });
  const avatar = await upload(await testAnimation(400, 400, 'gif'), 'image/gif');
  await alice.client.setAvatarUrl(avatar);
  const { avatar_url } = await alice.client.getProfileInfo(alice.userId);
  assert.equal(avatar_url, avatar);
  assert.deepEqual(await thumbnailOf(avatar, [30, 30], 'crop'), { size: [32, 32], frames: 1 });
  assert.deepEqual(await thumbnailOf(avatar, [30, 30], 'crop', true), { size: [32, 32], frames: 3 });
});

test('decrypts the history before an invite with the keys that the inviter shares', async () => {
  const [alice, bob] = await Promise.all([newSession('alice'), newSession('bob')]);
  const encryption = { algorithm: 'm.megolm.v1.aes-sha2' };
  const { room_id: room } = await alice.client.createRoom({
    preset: Preset.PrivateChat,
    initial_state: [
      { type: EventType.RoomEncryption, state_key: '', content: encryption },
      { type: EventType.RoomHistoryVisibility, state_key: '', content: { history_visibility: 'shared' } },
    ],
  });
  await alice.waitForEncryptedRoom(room, 1);
  const messageId = await alice.say(room, 'before you came');
  await alice.client.invite(room, bob.userId);
  await acceptInvite(bob, room);
  await waitForMembers(room, alice, bob);
  const view = await bob.room(room);
  if (!view.findEventById(messageId)) await bob.client.scrollback(view);
  const event = await bob.decrypted(room, messageId);
  assert.equal(event.getWireType(), 'm.room.encrypted');
  assert.equal(event.getContent()['body'], 'before you came');
});
