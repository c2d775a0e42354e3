import { boolean, duration, object, option, type SectionType, section } from '../kernel/config/index.ts';

/** Push notifications and unread counts. */
export const pushSection = section({
  title: 'Push notifications',
  options: {
    push: option(
      object({
        enabled: option(boolean(), {
          description:
            'Evaluates push rules and sends notifications. When off, there are no unread counts either.',
          default: true,
        }),
        include_content: option(boolean(), {
          description:
            'Sends the content of messages to push gateways. When off, they receive only the ids of event and room. Pushers with the format `event_id_only` never receive more.',
          default: true,
        }),
        group_unread_count_by_room: option(boolean(), {
          description:
            'Lets badges, the numbers on the icons of apps, count rooms with unread messages. When off, they count unread messages.',
          default: true,
        }),
        jitter_delay: option(duration(), {
          description:
            'Delays each notification by a random time of at most this duration, so that the time of a notification does not reveal who is in a room.',
          default: '0s',
          since: '1.84.0',
        }),
      }),
      { description: 'Push notifications.' },
    ),
  },
});

/** The value of `push`. */
export type PushOptions = SectionType<typeof pushSection>['push'];
