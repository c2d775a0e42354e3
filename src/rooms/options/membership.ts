import { boolean, number, object, option, string } from '../../kernel/config/index.ts';

/** Options of invites, joins and leaves. */
export const membershipOptions = {
  block_non_admin_invites: option(boolean(), {
    description:
      'Lets only administrators of this server invite local users, mail addresses and phone numbers. Users of other servers cannot invite local users either.',
    default: false,
  }),
  include_profile_data_on_invite: option(boolean(), {
    description: 'Puts the display name and the avatar of the invited user into the invite.',
    default: true,
  }),
  allow_per_room_profiles: option(boolean(), {
    description: 'Lets users have a different display name and avatar in each room.',
    default: true,
  }),
  require_membership_for_aliases: option(boolean(), {
    description: 'Lets users add aliases only to rooms that they are in.',
    default: true,
  }),
  forget_rooms_on_leave: option(boolean(), {
    description: 'Forgets a room for a user who leaves, is kicked or is banned.',
    default: false,
  }),
  limit_remote_rooms: option(
    object({
      enabled: option(boolean(), {
        description:
          'Checks how complex a room of other servers is before a user joins it. If it is too complex, the user cannot join, or is made to leave again.',
        default: false,
      }),
      complexity: option(number({ minimum: 0 }), {
        description:
          'The maximum complexity of rooms that users may join. A room has complexity 1 for every 500 state events.',
        default: 1,
        unit: 'complexity',
      }),
      complexity_error: option(string(), {
        description: 'The error message for the user.',
        default: 'This room is too complex for this homeserver: it cannot be joined from here.',
      }),
      admins_can_join: option(boolean(), {
        description: 'Lets administrators of this server join rooms that are too complex for other users.',
        default: false,
      }),
    }),
    { description: 'Keeps users out of remote rooms that are too complex for this server.' },
  ),
};
