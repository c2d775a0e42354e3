import { EventType, Preset } from 'matrix-js-sdk';
import type { EncryptedSession } from './encrypted-session.ts';

const forMembersOnly = {
  type: EventType.RoomHistoryVisibility,
  state_key: '',
  content: { history_visibility: 'joined' },
};

/**
 * A private encrypted room of the first, which the others have joined; who is in it reads what is said meanwhile.
 * @param rotation messages after which a sender takes another key
 */
export async function encryptedRoom(
  [owner, ...guests]: readonly [EncryptedSession, ...EncryptedSession[]],
  rotation = 100,
): Promise<string> {
  const encryption = {
    type: EventType.RoomEncryption,
    state_key: '',
    content: { algorithm: 'm.megolm.v1.aes-sha2', rotation_period_msgs: rotation },
  };
  const { room_id } = await owner.client.createRoom({
    preset: Preset.PrivateChat,
    invite: guests.map(({ userId }) => userId),
    initial_state: [encryption, forMembersOnly],
  });
  for (const guest of guests) await join(guest, room_id);
  await allIn(room_id, owner, ...guests);
  return room_id;
}

/** Accepts an invitation. */
export async function join(guest: EncryptedSession, roomId: string): Promise<void> {
  await guest.room(roomId, 'invite');
  await guest.client.joinRoom(roomId);
}

/** Everybody knows that the room is encrypted and that they are in it, and nobody else. */
export async function allIn(roomId: string, ...members: EncryptedSession[]): Promise<void> {
  for (const member of members) await member.encryptedRoom(roomId, members.length);
}
