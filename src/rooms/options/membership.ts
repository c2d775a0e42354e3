import { boolean, number, object, option, string } from '../../kernel/config/index.ts';

/** Inviting, joining and leaving. */
export const membershipOptions = {
  block_non_admin_invites: option(boolean(), {
    description: 'Refuses invitations of local users, except by administrators of this server.',
    default: false,
  }),
  include_profile_data_on_invite: option(boolean(), {
    description: 'Puts the display name and the avatar of the invited user into the invitation.',
    default: true,
  }),
  allow_per_room_profiles: option(boolean(), {
    description: 'Lets users have another display name and avatar in single rooms.',
    default: true,
  }),
  require_membership_for_aliases: option(boolean(), {
    description: 'Lets users add aliases only to rooms that they are in.',
    default: true,
  }),
  forget_rooms_on_leave: option(boolean(), {
    description: 'Forgets a room for a user who leaves, is removed or is banned.',
    default: false,
  }),
  limit_remote_rooms: option(
    object({
      enabled: option(boolean(), {
        description:
          'Looks how complex a room of other servers is before a user joins it. If it is too complex, the user cannot join, or leaves again at once.',
        default: false,
      }),
      complexity: option(number({ minimum: 0 }), {
        description: 'The most complex room that users may join.',
        default: 1,
        unit: 'complexity',
      }),
      complexity_error: option(string(), {
        description: 'What the user is told.',
        default: 'This room is too complex for this homeserver: it cannot be joined from here.',
      }),
      admins_can_join: option(boolean(), {
        description: 'Lets administrators of this server join such rooms.',
        default: false,
      }),
    }),
    { description: 'Keeps users out of rooms that are too much for this server.' },
  ),
};
