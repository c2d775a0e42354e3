import { boolean, duration, object, option, section } from '../kernel/config/index.ts';

/** Notifications. */
export const pushSection = section({
  title: 'Push notifications',
  options: {
    push: option(
      object({
        enabled: option(boolean(), {
          description:
            'Works out who is to be notified of what. When off, there are no unread counts either.',
          default: true,
        }),
        include_content: option(boolean(), {
          description:
            'Sends the content of messages to push gateways. When off, they learn the ids of event and room only. Clients that ask for ids only never get more.',
          default: true,
        }),
        group_unread_count_by_room: option(boolean(), {
          description: 'Counts rooms with unread messages. When off, counts the messages.',
          default: true,
        }),
        jitter_delay: option(duration(), {
          description:
            'Delays each notification by a random time up to this, so that nobody can tell from its moment who is in a room.',
          default: '0s',
          since: '1.84.0',
        }),
      }),
      { description: 'Push notifications.' },
    ),
  },
});
