/** Mail addresses and phone numbers of accounts: their validation, and what users do with them. */
import { fileURLToPath } from 'node:url';

export type { AccountAddresses } from './addresses/account-addresses.ts';
export { thirdPartyIdsManifest } from './manifest.ts';
export { openThirdPartyIds, type ThirdPartyIds, type ThirdPartyIdsDeps } from './open.ts';

/** Folder of the mails and the pages of validations. */
export const thirdPartyIdTemplates = fileURLToPath(new URL('./templates', import.meta.url));
