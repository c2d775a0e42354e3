import {
  boolean,
  list,
  nullable,
  openObject,
  option,
  regularExpression,
  section,
  string,
} from '../../kernel/config/index.ts';

const text = () => string({ minLength: 1 });

/** An absolute http or https URL, or an empty text. */
const urlOrEmpty = () =>
  string({
    pattern: '^(https?://[^\\s/]+(/\\S*)?)?$',
    allowed: 'an absolute http:// or https:// URL, or an empty text',
  });

/**
 * The localpart of a sender. All characters of historical user ids are accepted: mautrix bridges generate localparts
 * with upper case, which new users may not have. Source: appendices, "Historical User IDs".
 */
const senderLocalpart = () =>
  string({
    pattern: '^[\\x21-\\x39\\x3b-\\x7e]+$',
    allowed: 'the local part of a user id: printable ASCII characters without spaces and colons',
  });

const namespaces = (of: string, exclusive = `Whether only the service may create such ${of}.`) =>
  option(
    nullable(
      list(
        openObject({
          regex: option(regularExpression(), { description: `Matches ${of}.`, required: true }),
          exclusive: option(boolean(), { description: exclusive, required: true }),
        }),
      ),
    ),
    { description: `The ${of} that the service is interested in.`, default: [] },
  );

/** The members of a registration file. Source: application service API, "Registration", and the named MSCs. */
export const registrationSection = section({
  title: 'Registration of an application service',
  options: {
    id: option(text(), { description: 'The id of the service, which never changes.', required: true }),
    url: option(nullable(urlOrEmpty()), {
      description: 'The URL of the service; null or empty if it receives no requests.',
      required: true,
    }),
    as_token: option(text(), {
      description: 'The token by which the service authenticates.',
      required: true,
      secret: true,
    }),
    hs_token: option(text(), {
      description: 'The token by which this server authenticates.',
      required: true,
      secret: true,
    }),
    sender_localpart: option(senderLocalpart(), {
      description: 'The localpart of the sender.',
      required: true,
    }),
    namespaces: option(
      openObject({
        users: namespaces('users'),
        aliases: namespaces('aliases'),
        rooms: namespaces(
          'rooms',
          'Has no effect: the server chooses the ids of rooms, and no service owns one.',
        ),
      }),
      { description: 'What the service is interested in.', required: true },
    ),
    rate_limited: option(nullable(boolean()), {
      description: 'Whether requests as users of the service are rate-limited.',
      default: true,
    }),
    protocols: option(nullable(list(text())), {
      description: 'The networks that the service bridges.',
      default: [],
    }),
    receive_ephemeral: option(nullable(boolean()), {
      description: 'Whether the service receives ephemeral data.',
      default: false,
    }),
    push_ephemeral: option(boolean(), { description: 'An old name of `receive_ephemeral`.', default: false }),
    'de.sorunome.msc2409.push_ephemeral': option(boolean(), {
      description: 'The name of `receive_ephemeral` in MSC2409.',
      default: false,
    }),
    'org.matrix.msc3202': option(boolean(), {
      description: 'Whether the service receives changes of device lists and counts of keys.',
      default: false,
    }),
    'io.element.msc4190': option(boolean(), {
      description: 'Whether the service creates devices without logging in.',
      default: false,
    }),
  },
});
