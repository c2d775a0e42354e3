import { type SectionType, section } from '../kernel/config/index.ts';
import { keyRules } from './options/key-rules.ts';
import { keyOptions } from './options/keys.ts';
import { requestOptions } from './options/requests.ts';

/** Requests to other servers, and the keys that sign requests and verify responses and events. */
export const federationClientSection = section({
  title: 'Requests to other servers, and keys',
  options: { ...requestOptions, ...keyOptions },
  rules: keyRules,
});

export type FederationClientConfig = SectionType<typeof federationClientSection>;
