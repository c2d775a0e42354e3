import type { Clock } from '../../kernel/clock.ts';
import type { EduHandlersByType } from './edu-handlers.ts';
import { EduRates } from './edu-rates.ts';
import { type PresenceEduDeps, presenceHandler } from './presence-edu-handler.ts';
import { type ReceiptEduDeps, receiptHandler } from './receipt-edu-handler.ts';
import { type TypingEduDeps, typingHandler } from './typing-edu-handler.ts';

export type EphemeralEduDeps = Omit<TypingEduDeps & ReceiptEduDeps & PresenceEduDeps, 'rates'> & {
  readonly clock: Clock;
};

/** Returns the handlers for EDUs of remote servers about typing, receipts and presence. */
export function ephemeralEduHandlers(deps: EphemeralEduDeps): EduHandlersByType {
  const shared = { ...deps, rates: new EduRates(deps.clock) };
  return {
    'm.typing': typingHandler(shared),
    'm.receipt': receiptHandler(shared),
    'm.presence': presenceHandler(shared),
  };
}
