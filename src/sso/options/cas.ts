import { boolean, integer, mapOf, nullable, object, option, string } from '../../kernel/config/index.ts';
import { descriptionOptions } from './provider.ts';

const cas = object({
  enabled: option(boolean(), { description: 'Lets users log in with CAS.', default: false }),
  ...descriptionOptions,
  server_url: option(
    nullable(string({ pattern: '^https?://\\S+$', allowed: 'an absolute http:// or https:// URL' })),
    {
      description: 'The URL of the CAS server. Required when CAS is enabled.',
      default: null,
    },
  ),
  protocol_version: option(nullable(integer({ minimum: 1, maximum: 3 })), {
    description: 'The version of the CAS protocol. Null means 2. `required_attributes` needs 3.',
    default: null,
  }),
  displayname_attribute: option(nullable(string({ minLength: 1 })), {
    description: 'The attribute that becomes the display name. Null uses none.',
    default: null,
  }),
  required_attributes: option(mapOf(nullable(string())), {
    description: 'Attributes that a user must have, with their values; null means any value.',
    default: {},
  }),
  enable_registration: option(boolean(), {
    description: 'Creates accounts for users who log in for the first time.',
    default: true,
  }),
  allow_numeric_ids: option(boolean(), {
    description: 'Accepts users whose name is a number; their user ids begin with `numeric_ids_prefix`.',
    default: false,
  }),
  numeric_ids_prefix: option(string({ pattern: '^[A-Za-z0-9]+$', allowed: 'letters and digits' }), {
    description: 'The prefix of the user ids of users whose name is a number.',
    default: 'u',
    since: '1.93.0',
  }),
});

export const casOption = option(cas, { description: 'Logging in with CAS.' });
