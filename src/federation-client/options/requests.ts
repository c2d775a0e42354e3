import {
  boolean,
  duration,
  integer,
  list,
  nullable,
  object,
  option,
  string,
  versionOneOf,
} from '../../kernel/config/index.ts';

/** How requests to other servers are made. */
export const requestOptions = {
  federation_verify_certificates: option(boolean(), {
    description: 'Requires valid TLS certificates of other servers.',
    default: true,
  }),
  federation_client_minimum_tls_version: option(versionOneOf('1', '1.1', '1.2', '1.3'), {
    description:
      'The oldest version of TLS to speak with other servers. With `1.3`, most public servers are out of reach.',
    default: '1',
  }),
  federation_certificate_verification_whitelist: option(list(string({ minLength: 1 })), {
    description:
      'Servers whose certificates are not checked; `*.` at the beginning stands for any subdomain. It has an effect only with `federation_verify_certificates`.',
    default: [],
  }),
  federation_custom_ca_list: option(list(string({ minLength: 1 })), {
    description:
      'PEM files of the authorities to trust for other servers, in place of those that the host trusts.',
    default: [],
  }),
  federation_domain_whitelist: option(nullable(list(string({ minLength: 1 }))), {
    description:
      'The only servers to speak with. When it is not given (or null), all servers are; an empty list that is given speaks with none. It does not keep users out of rooms in which other servers are.',
    default: [],
    unset: null,
  }),
  federation: option(
    object({
      client_timeout: option(duration(), {
        description: 'How long to wait for the answer to a request.',
        default: '60s',
      }),
      max_short_retry_delay: option(duration(), {
        description: 'The longest pause between attempts while someone waits for the answer.',
        default: '2s',
      }),
      max_long_retry_delay: option(duration(), {
        description: 'The longest pause between attempts in the background.',
        default: '60s',
      }),
      max_short_retries: option(integer({ minimum: 0 }), {
        description: 'How many further attempts are made while someone waits for the answer.',
        default: 3,
        unit: 'attempts',
      }),
      max_long_retries: option(integer({ minimum: 0 }), {
        description: 'How many further attempts are made in the background.',
        default: 10,
        unit: 'attempts',
      }),
      destination_min_retry_interval: option(duration(), {
        description:
          'How long a server that could not be reached is left alone at first. This is remembered across restarts.',
        default: '10m',
      }),
      destination_retry_multiplier: option(integer({ minimum: 1 }), {
        description: 'By what that time grows with each further failure.',
        default: 2,
        unit: 'factor',
      }),
      destination_max_retry_interval: option(duration(), {
        description: 'The longest time that a server is left alone.',
        default: '1w',
      }),
    }),
    { description: 'Time limits and repetitions of requests to other servers.' },
  ),
};
