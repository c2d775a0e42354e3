import { EventType, Preset } from 'matrix-js-sdk';
import type { EncryptedSession } from './encrypted-session.ts';

const joinedVisibility = {
  type: EventType.RoomHistoryVisibility,
  state_key: '',
  content: { history_visibility: 'joined' },
};

/**
 * Creates a private encrypted room as the user of the first session. The users of the other sessions join it. The
 * history visibility is `joined`.
 * @param rotation number of messages that a sender encrypts with one Megolm session
 */
export async function createEncryptedRoom(
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
    initial_state: [encryption, joinedVisibility],
  });
  for (const guest of guests) await acceptInvite(guest, room_id);
  await waitForMembers(room_id, owner, ...guests);
  return room_id;
}

/** Waits for the invite, and accepts it. */
export async function acceptInvite(guest: EncryptedSession, roomId: string): Promise<void> {
  await guest.room(roomId, 'invite');
  await guest.client.joinRoom(roomId);
}

/** Waits until each session knows that the room is encrypted and has exactly these members. */
export async function waitForMembers(roomId: string, ...members: EncryptedSession[]): Promise<void> {
  for (const member of members) await member.waitForEncryptedRoom(roomId, members.length);
}
