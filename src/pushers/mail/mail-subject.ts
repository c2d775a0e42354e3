import type { EmailOptions } from '../../mail/index.ts';
import { joinNames } from '../names/room-content.ts';

/** A room in a mail, as the subject needs it. */
export interface RoomInSubject {
  /** The name of the room, or else its alias; `undefined` in rooms that have neither. */
  readonly name: string | undefined;
  readonly isInvite: boolean;
  /** Names of the senders of the room's events, without repetitions; for an invite, the name of the inviter. */
  readonly senders: readonly string[];
  /** Number of the room's events that notify the user. */
  readonly count: number;
}

/** The template of a subject, and the values of its placeholders. */
export interface Subject {
  readonly template: string;
  readonly values: Readonly<Record<string, string>>;
}

/**
 * Chooses the subject of a mail, as the reference server does (`make_summary_text` in `synapse/push/mailer.py`).
 * @param cause the room that caused the mail
 * @param rooms all rooms of the mail
 */
export function subjectOf(
  subjects: EmailOptions['subjects'],
  cause: RoomInSubject,
  rooms: readonly RoomInSubject[],
): Subject {
  const person = joinNames(cause.senders);
  const room = cause.name;
  if (rooms.length > 1) {
    return room === undefined
      ? { template: subjects.messages_from_person_and_others, values: { person } }
      : { template: subjects.messages_in_room_and_others, values: { room } };
  }
  if (cause.isInvite) {
    return room === undefined
      ? { template: subjects.invite_from_person, values: { person } }
      : { template: subjects.invite_from_person_to_room, values: { person, room } };
  }
  if (cause.count === 1) {
    return room === undefined
      ? { template: subjects.message_from_person, values: { person } }
      : { template: subjects.message_from_person_in_room, values: { person, room } };
  }
  return room === undefined
    ? { template: subjects.messages_from_person, values: { person } }
    : { template: subjects.messages_in_room, values: { room } };
}
