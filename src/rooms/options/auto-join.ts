import {
  boolean,
  list,
  localpart,
  nullable,
  oneOf,
  option,
  roomIdOrAlias,
} from '../../kernel/config/index.ts';

/** Rooms that new users are joined to. */
export const autoJoinOptions = {
  auto_join_rooms: option(list(roomIdOrAlias()), {
    description:
      'Rooms and spaces that new users are joined to. With `autocreate_auto_join_rooms`, rooms that do not exist are created when the first user registers.',
    default: [],
  }),
  autocreate_auto_join_rooms: option(boolean(), {
    description: 'Creates the rooms that do not exist. Spaces are never created.',
    default: true,
  }),
  autocreate_auto_join_rooms_federated: option(boolean(), {
    description:
      'Lets users of other servers join the rooms that are created. A change has no effect on rooms that exist.',
    default: true,
  }),
  autocreate_auto_join_room_preset: option(oneOf('public_chat', 'private_chat', 'trusted_private_chat'), {
    description:
      'The preset of the rooms that are created. With `trusted_private_chat`, every user who is joined to one of these rooms is assigned power level 100. The two private presets need `auto_join_mxid_localpart`.',
    default: 'public_chat',
  }),
  auto_join_mxid_localpart: option(nullable(localpart()), {
    description:
      'The user who creates the rooms, and who invites new users to rooms that require an invite; in an existing room, this user must be a member who may invite. Null lets the first user who registers create them.',
    default: null,
  }),
  auto_join_rooms_for_guests: option(boolean(), {
    description: 'Joins guests to the rooms, too.',
    default: true,
  }),
};
