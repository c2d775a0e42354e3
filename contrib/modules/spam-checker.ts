/**
 * An example of a module: rejects texts that match a pattern, and messages of users who send too many.
 *
 *     modules:
 *       - module: ./contrib/modules/spam-checker.ts
 *         config:
 *           patterns: ['buy .* coins']
 *           max_messages: 20
 *           per_seconds: 60
 */
import type { Decision, Module } from 'hearth/module';

interface Config {
  /** Regular expressions, without regard to case, for the text of messages, topics and names of rooms. */
  readonly patterns?: readonly string[];
  /** Maximum messages of one user in `per_seconds`; absent: no limit. */
  readonly max_messages?: number;
  /** 60 when absent. */
  readonly per_seconds?: number;
}

/** Maximum number of counted users; beyond it, all counts begin again. */
const maxUsers = 10_000;

const checkSpam: Module<Config> = (config, api) => {
  const { patterns = [], max_messages: maxMessages = Number.POSITIVE_INFINITY, per_seconds = 60 } = config;
  const expressions = patterns.map((pattern) => new RegExp(pattern, 'i'));
  const window = per_seconds * 1000;
  const sent = new Map<string, { since: number; count: number }>();

  /** Counts a message. @returns whether its sender may send it */
  const countMessage = (sender: string): boolean => {
    const now = performance.now();
    const counted = sent.get(sender);
    if (counted && now - counted.since < window) return ++counted.count <= maxMessages;
    if (sent.size >= maxUsers) sent.clear();
    sent.set(sender, { since: now, count: 1 });
    return maxMessages >= 1;
  };

  api.registerSpamChecker({
    checkEvent({ type, sender, content }): Decision {
      // An edit has its new text in `m.new_content`.
      const shown = [content, Object(content['m.new_content']) as typeof content];
      const texts = shown.flatMap((part) => [
        part['body'],
        part['formatted_body'],
        part['topic'],
        part['name'],
      ]);
      const isSpam = texts.some(
        (text) => typeof text === 'string' && expressions.some((expression) => expression.test(text)),
      );
      if (isSpam) {
        api.log.info('Rejected an event as spam', { sender, type });
        return { errcode: 'M_FORBIDDEN', error: 'This message looks like spam' };
      }
      const isMessage = type === 'm.room.message' || type === 'm.room.encrypted';
      if (!isMessage || countMessage(sender)) return 'allow';
      return { errcode: 'M_LIMIT_EXCEEDED', error: 'You send too many messages', status: 429 };
    },
  });
};

export default checkSpam;
