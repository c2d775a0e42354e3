/**
 * Mail addresses and phone numbers of accounts: their validation, their use, and their publication at identity servers.
 */
import { fileURLToPath } from 'node:url';

export type { AccountAddresses, AddressExtensions } from './addresses/account-addresses.ts';
export {
  openThirdPartyIds,
  type ThirdPartyIdRoutesDeps,
  type ThirdPartyIds,
  type ThirdPartyIdsDeps,
  thirdPartyIdRoutes,
} from './open.ts';

/** Folder of the mails and the pages of validations. */
export const thirdPartyIdTemplates = fileURLToPath(new URL('./templates', import.meta.url));
