/**
 * Whether the host of a URL can be written in a Content-Security-Policy. Other hosts may contain `;`, `,` or `*`, which
 * would add directives to the policy or widen it.
 */
export const hasPlainHost = ({ hostname }: URL): boolean => /^([\w.-]*|\[[\da-f:.]+\])$/i.test(hostname);
