import {
  boolean,
  duration,
  eitherOf,
  freeObject,
  integer,
  list,
  nullable,
  object,
  oneOf,
  option,
  string,
  versionOneOf,
} from '../../kernel/config/index.ts';

const powerLevels = (preset: string) =>
  option(nullable(freeObject()), {
    description: `Power levels of rooms created with the preset \`${preset}\`. Null keeps the power levels of the preset.`,
    default: null,
  });

/** Options of new rooms. */
export const creationOptions = {
  default_room_version: option(versionOneOf('1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12'), {
    description: 'The version of a new room if the request to create it does not contain a version.',
    default: '10',
    changed: ['1.76: 10 in place of 9.'],
  }),
  encryption_enabled_by_default_for_room_type: option(oneOf('all', 'invite', 'off'), {
    description:
      'Which new rooms of local users are encrypted from the start: all of them (`all`), the rooms created with the presets `private_chat` or `trusted_private_chat` (`invite`), or none (`off`).',
    default: 'off',
  }),
  default_power_level_content_override: option(
    object({
      private_chat: powerLevels('private_chat'),
      trusted_private_chat: powerLevels('trusted_private_chat'),
      public_chat: powerLevels('public_chat'),
    }),
    {
      description:
        'Power levels of new rooms, by preset, in the format of `power_level_content_override` in a request to create a room; the override of a request is applied after these levels. A field like `events` replaces the whole field of this name in the preset, so repeat the levels to keep; in the presets, `m.room.name`, `m.room.canonical_alias` and `m.room.avatar` need level 50, and `m.room.power_levels`, `m.room.history_visibility`, `m.room.tombstone`, `m.room.server_acl` and `m.room.encryption` need 100 (`m.room.tombstone` since room version 12: 150).',
      default: {},
    },
  ),
  room_prejoin_state: option(
    object({
      disable_default_event_types: option(boolean(), {
        description:
          'Leaves out the state that is shared by default: `m.room.join_rules`, `m.room.canonical_alias`, `m.room.avatar`, `m.room.encryption`, `m.room.name`, `m.room.create` and `m.room.topic`.',
        default: false,
      }),
      additional_event_types: option(
        list(eitherOf(string({ minLength: 1 }), list(string(), { minItems: 2, maxItems: 2 }))),
        {
          description:
            'Additional state to share: an event type, to share all its state events, or a pair of event type and state key.',
          default: [],
        },
      ),
    }),
    { description: 'The stripped state of a room that invited and knocking users receive.' },
  ),
  dummy_events_threshold: option(integer({ minimum: 1 }), {
    description:
      'The number of forward extremities of a room at which the server merges them by sending an event of type `org.proto.dummy_event`.',
    default: 10,
    unit: 'forward extremities',
  }),
  max_event_delay_duration: option(nullable(duration()), {
    description: 'The maximum time for which clients may delay an event. Null turns delayed events off.',
    default: null,
  }),
  use_frozen_dicts: option(boolean(), {
    description:
      'Freezes events in memory, so that a programming error cannot change events that other code uses. This costs time.',
    default: false,
  }),
};
