import { object, option, string } from '../kernel/config/index.ts';

function subject(about: string, template: string) {
  return option(string(), { description: `The subject of a mail about ${about}.`, default: template });
}

export const subjectsOption = option(
  object({
    message_from_person_in_room: subject(
      'one message from one person in a named room',
      '[%(app)s] You have a message on %(app)s from %(person)s in the %(room)s room...',
    ),
    message_from_person: subject(
      'one message from one person',
      '[%(app)s] You have a message on %(app)s from %(person)s...',
    ),
    messages_from_person: subject(
      'several messages from one person',
      '[%(app)s] You have messages on %(app)s from %(person)s...',
    ),
    messages_in_room: subject(
      'several messages in one named room',
      '[%(app)s] You have messages on %(app)s in the %(room)s room...',
    ),
    messages_in_room_and_others: subject(
      'messages in several rooms',
      '[%(app)s] You have messages on %(app)s in the %(room)s room and others...',
    ),
    messages_from_person_and_others: subject(
      'messages from several people',
      '[%(app)s] You have messages on %(app)s from %(person)s and others...',
    ),
    invite_from_person_to_room: subject(
      'an invitation to a named room',
      '[%(app)s] %(person)s has invited you to join the %(room)s room on %(app)s...',
    ),
    invite_from_person: subject(
      'an invitation to a room without a name',
      '[%(app)s] %(person)s has invited you to chat on %(app)s...',
    ),
    password_reset: subject('a password reset', '[%(server_name)s] Password reset'),
    email_validation: subject('an address to be validated', '[%(server_name)s] Validate your email'),
  }),
  {
    description:
      'Templates of subjects. `%(app)s` is replaced by `app_name`, `%(server_name)s` by the name of this server, and in subjects about messages and invitations `%(person)s` by the names of the senders and `%(room)s` by the name of the room.',
  },
);
